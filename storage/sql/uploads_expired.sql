-- Let go of the uploads of a store whose lease is over, and tell which of them never became records.
DELETE FROM uploads WHERE store_id = %(store_id)s AND expires_at <= clock_timestamp()
RETURNING id, finished_at IS NULL AS unfinished
