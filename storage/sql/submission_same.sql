-- The oldest record of this owner made of the same bytes and options.
SELECT id FROM records
WHERE owner_id = %(owner_id)s AND fingerprint = %(fingerprint)s AND deleted_at IS NULL
ORDER BY created_at, id
LIMIT 1
