-- An upload becomes its record, in the transaction that makes the record; nothing when it is another's by now.
UPDATE uploads SET received = bytes, finished_at = coalesce(finished_at, clock_timestamp())
WHERE id = %(id)s AND (holder = %(holder)s OR finished_at IS NOT NULL)
RETURNING id
