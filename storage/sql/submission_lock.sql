-- Submissions that are the same wait for each other until the end of the transaction.
SELECT pg_advisory_xact_lock(%(key)s)
