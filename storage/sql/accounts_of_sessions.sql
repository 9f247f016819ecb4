-- Who is signed in by these secrets, and whether the session was moved on lately.
SELECT s.secret_sha256, a.id, a.name, a.created_at, a.disabled_at, a.is_service_owner,
    s.until > clock_timestamp() + make_interval(secs => %(idle_seconds)s * 0.98) AS noted
FROM sessions AS s JOIN accounts AS a ON a.id = s.account_id
WHERE s.secret_sha256 = ANY(%(secrets)s) AND a.disabled_at IS NULL
    AND s.until > clock_timestamp()
    AND s.began_at > clock_timestamp() - make_interval(secs => %(longest_seconds)s)
