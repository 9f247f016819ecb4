-- Whose secret this is, if it still opens anything, and whether its use was noted within the last minute.
SELECT a.id, a.name, a.created_at, a.disabled_at, t.id AS token_id,
       coalesce(t.last_used_at > clock_timestamp() - interval '1 minute', false) AS noted
FROM tokens AS t JOIN accounts AS a ON a.id = t.account_id
WHERE t.secret_sha256 = %(secret_sha256)s
  AND t.revoked_at IS NULL AND a.disabled_at IS NULL
  AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
