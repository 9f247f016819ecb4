-- A link is used: of those who come at once one gets it.
WITH used AS (
    DELETE FROM sign_in_links WHERE secret_sha256 = %(secret_sha256)s RETURNING account_id, until
)
SELECT a.id, a.name, a.created_at, a.disabled_at, a.is_service_owner
FROM used JOIN accounts AS a ON a.id = used.account_id
WHERE used.until > clock_timestamp() AND a.disabled_at IS NULL
