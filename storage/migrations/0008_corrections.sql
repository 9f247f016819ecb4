-- What owners correct, kept apart from what was recognised: no stage writes here, and nothing here is written over
-- what a stage wrote. A correction stays when its segment is recognised anew.

-- One row for each correction of a segment, the last one counts. Its edition is the key as well, so of two who saw
-- the same one only one corrects it.
CREATE TABLE corrections (
    record_id uuid NOT NULL REFERENCES records ON DELETE CASCADE,
    slice integer NOT NULL CHECK (slice >= 0),
    number integer NOT NULL CHECK (number >= 0),
    edition integer NOT NULL CHECK (edition > 0),
    text text, -- NULL: back to what was recognised
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    by text NOT NULL,
    PRIMARY KEY (record_id, slice, number, edition)
);

ALTER TABLE records
    -- How many corrections were made: who waits for a change of what is shown hears of it by this.
    ADD COLUMN corrections integer NOT NULL DEFAULT 0 CHECK (corrections >= 0),
    -- The owner's names for those on the two sides of a call.
    ADD COLUMN left_name text NOT NULL DEFAULT '',
    ADD COLUMN right_name text NOT NULL DEFAULT '';

-- Segments as their owner has them: `said` is what was recognised unless a correction counts.
CREATE VIEW owned_segments AS
SELECT s.record_id, s.slice, s.number, s.start_seconds, s.end_seconds, s.text, s.words, s.side, s.language, s.gap,
    coalesce(c.edition, 0) AS edition, c.text AS corrected, coalesce(c.text, s.text) AS said
FROM segments AS s
LEFT JOIN LATERAL (
    SELECT last.edition, last.text FROM corrections AS last
    WHERE last.record_id = s.record_id AND last.slice = s.slice AND last.number = s.number
    ORDER BY last.edition DESC
    LIMIT 1
) AS c ON true;

DROP TRIGGER records_changed ON records;
CREATE TRIGGER records_changed
    AFTER UPDATE OF milestone, stop_code, deleted_at, edition, corrections, declared_seconds, decoded_seconds,
        audio_warnings, found_language, recognised_seconds, owner_id ON records
    FOR EACH ROW WHEN (
        (OLD.milestone, OLD.stop_code, OLD.deleted_at, OLD.edition, OLD.corrections, OLD.declared_seconds,
            OLD.decoded_seconds, OLD.audio_warnings, OLD.found_language, OLD.recognised_seconds, OLD.owner_id)
        IS DISTINCT FROM
        (NEW.milestone, NEW.stop_code, NEW.deleted_at, NEW.edition, NEW.corrections, NEW.declared_seconds,
            NEW.decoded_seconds, NEW.audio_warnings, NEW.found_language, NEW.recognised_seconds, NEW.owner_id)
    ) EXECUTE FUNCTION tell_change();

-- Corrected words are searched for as well. Both vectors fit; where their sum does not, the first one stands.
CREATE FUNCTION words_with(known tsvector, said text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN known || words_of(coalesce(said, ''));
EXCEPTION WHEN program_limit_exceeded THEN
    RETURN known;
END
$$;

CREATE FUNCTION note_corrected_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE record_words SET words = words_with(words, NEW.text) WHERE record_id = NEW.record_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER corrections_words AFTER INSERT ON corrections
    FOR EACH ROW WHEN (NEW.text IS NOT NULL) EXECUTE FUNCTION note_corrected_words();

CREATE OR REPLACE FUNCTION note_words_again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE record_words
    SET words = words_with(
        words_of_record(NEW.title, NEW.description, NEW.topics, NEW.filename, NEW.recognised_text),
        (
            SELECT string_agg(last.text, E'\n') FROM (
                SELECT DISTINCT ON (slice, number) text FROM corrections WHERE record_id = NEW.id
                ORDER BY slice, number, edition DESC
            ) AS last
        )
    )
    WHERE record_id = NEW.id;
    RETURN NULL;
END
$$;
