-- One record, by its id; the stop flag's columns are folded into one value by the reader.
SELECT id, owner_id, created_at, title, description, topics, asked_language, edition, filename, channels, track,
    hotwords, translate, store_id, source_path, source_bytes, source_sha256, milestone, milestone_since, milestone_seconds,
    lane, failures, claim_token, lease_until, stop_code, stop_reason, stopped_at, stopped_by, deleted_at,
    audio_path, declared_seconds, decoded_seconds, audio_warnings, recogniser, operation, found_language,
    recognised_seconds, recognised_text
FROM records
WHERE id = %(id)s AND deleted_at IS NULL
