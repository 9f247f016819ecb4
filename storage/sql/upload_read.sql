-- An upload of this account; nothing once its lease is over.
SELECT id, store_id, expires_at, bytes, received, metadata, options, finished_at FROM uploads
WHERE id = %(id)s AND account_id = %(account_id)s AND expires_at > clock_timestamp()
