-- Whether the database answers, and whether it takes writes.
SELECT NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean AS takes_writes
