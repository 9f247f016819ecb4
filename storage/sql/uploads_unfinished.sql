-- How many unfinished uploads an account has.
SELECT count(*) FROM uploads
WHERE account_id = %(account_id)s AND finished_at IS NULL AND expires_at > clock_timestamp()
