-- Another password: whoever is signed in by the one before, or holds a link, is signed out.
WITH ended AS (
    DELETE FROM sessions WHERE account_id = %(id)s
), taken_back AS (
    DELETE FROM sign_in_links WHERE account_id = %(id)s
)
UPDATE accounts SET password_hash = %(password_hash)s WHERE id = %(id)s
RETURNING id
