-- Listening copies and peaks: made of a decoded recording beside the queue, which neither waits for them nor knows them.

-- One row for each record that was decoded. `wake_at` is when a making may begin: the end of the lease of the one
-- that is at it, or of a delay. What is made is published by its path under the making's token; a source that
-- plays everywhere is its own listening copy. Gone with its record.
CREATE TABLE listening_copies (
    record_id uuid PRIMARY KEY REFERENCES records ON DELETE CASCADE,
    wake_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tries integer NOT NULL DEFAULT 0 CHECK (tries >= 0), -- makings begun; of no consequence to the record
    token uuid,
    path text,
    media text,
    peaks bytea CHECK (octet_length(peaks) <= 8192), -- least and greatest of each stretch, as signed bytes
    failed_because text,
    CONSTRAINT made_is_whole CHECK ((path IS NULL) = (media IS NULL) AND (path IS NULL) = (peaks IS NULL)),
    CONSTRAINT over_is_unheld CHECK (token IS NULL OR (path IS NULL AND failed_because IS NULL))
);
CREATE INDEX listening_copies_wanted ON listening_copies (wake_at)
    WHERE path IS NULL AND failed_because IS NULL;

CREATE FUNCTION want_listening_copy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO listening_copies (record_id) VALUES (NEW.id) ON CONFLICT (record_id) DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER records_decoded AFTER UPDATE OF audio_path ON records
    FOR EACH ROW WHEN (OLD.audio_path IS NULL AND NEW.audio_path IS NOT NULL)
    EXECUTE FUNCTION want_listening_copy();

INSERT INTO listening_copies (record_id) SELECT id FROM records WHERE audio_path IS NOT NULL;
