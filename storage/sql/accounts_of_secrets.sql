-- Whose secrets these are, of those that still open anything, and whether a use was noted within the last minute.
SELECT t.secret_sha256, a.id, a.name, a.created_at, a.disabled_at, a.is_service_owner, t.id AS token_id,
       coalesce(t.last_used_at > clock_timestamp() - interval '1 minute', false) AS noted
FROM tokens AS t JOIN accounts AS a ON a.id = t.account_id
WHERE t.secret_sha256 = ANY(%(secrets)s)
  AND t.revoked_at IS NULL AND a.disabled_at IS NULL
  AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
