-- A record and its first event, and a ring of the bell; a second time with the same id changes nothing.
WITH accepted AS (
    INSERT INTO records (
        id, owner_id, filename, title, description, topics, asked_language, channels, track, hotwords, translate,
        store_id, source_path, source_bytes, source_sha256, fingerprint, lane
    ) VALUES (
        %(id)s, %(owner_id)s, %(filename)s, %(title)s, %(description)s, %(topics)s, %(asked_language)s,
        %(channels)s, %(track)s, %(hotwords)s, %(translate)s, %(store_id)s, %(source_path)s, %(source_bytes)s,
        %(source_sha256)s, %(fingerprint)s, %(lane)s
    )
    ON CONFLICT (id) DO NOTHING
    RETURNING id, owner_id, created_at, milestone, lane, source_bytes
), told AS (
    INSERT INTO events (record_id, kind, milestone, by, detail)
    SELECT accepted.id, 'accepted', accepted.milestone, accounts.name,
           jsonb_build_object('bytes', accepted.source_bytes)
    FROM accepted JOIN accounts ON accounts.id = accepted.owner_id
)
SELECT pg_notify('rubezh_ready', lane || ' ' || extract(epoch FROM created_at)) FROM accepted
