-- Whom a link would sign in.
SELECT a.id, a.name, a.created_at, a.disabled_at, a.is_service_owner
FROM sign_in_links AS l JOIN accounts AS a ON a.id = l.account_id
WHERE l.secret_sha256 = %(secret_sha256)s AND l.until > clock_timestamp() AND a.disabled_at IS NULL
