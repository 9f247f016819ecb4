-- The converting stage's own columns.
UPDATE records
SET audio_path = %(audio_path)s,
    declared_seconds = %(declared_seconds)s,
    decoded_seconds = %(decoded_seconds)s,
    audio_warnings = %(audio_warnings)s
WHERE id = %(id)s AND claim_token = %(token)s
