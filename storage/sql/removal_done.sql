-- It has gone.
DELETE FROM removals WHERE record_id = %(record_id)s
