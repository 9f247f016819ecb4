-- Every browser of an account is signed out, and links that were not used open nothing.
WITH taken_back AS (
    DELETE FROM sign_in_links WHERE account_id = %(account_id)s
)
DELETE FROM sessions WHERE account_id = %(account_id)s
