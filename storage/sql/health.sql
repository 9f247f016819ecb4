-- What a check-up asks of the server: its version, its clock, and whether it takes writes.
SELECT current_setting('server_version') AS version,
    clock_timestamp() AS now,
    NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean AS takes_writes
