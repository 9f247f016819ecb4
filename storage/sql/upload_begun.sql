-- A resumable upload that has no bytes yet.
INSERT INTO uploads (id, account_id, store_id, expires_at, bytes, metadata, options)
VALUES (
    %(id)s, %(account_id)s, %(store_id)s, clock_timestamp() + make_interval(secs => %(kept_seconds)s),
    %(source_bytes)s, %(metadata)s, %(options)s
)
RETURNING id, store_id, expires_at, bytes, received, metadata, options, finished_at
