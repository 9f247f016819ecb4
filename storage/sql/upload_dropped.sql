-- Give an upload up, unless it has become a record.
DELETE FROM uploads WHERE id = %(id)s AND account_id = %(account_id)s AND finished_at IS NULL
RETURNING id
