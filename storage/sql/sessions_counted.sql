-- At how many browsers an account is signed in.
SELECT count(*) FROM sessions WHERE account_id = %(account_id)s AND until > clock_timestamp()
