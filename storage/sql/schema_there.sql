-- Whether there is a schema of ours at all.
SELECT to_regclass('migrations') IS NOT NULL
