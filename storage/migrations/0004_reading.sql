-- What is read: words to search by, and word of what changed.

-- The words of each record, kept apart from its row: a claim writes the row again and again, and each time every
-- index of it, so an index of words there would be paid for by the queue. This table is written when a record
-- comes into being, when its owner edits it and when its text is whole, and never by a claim or a renewal.
CREATE TABLE record_words (
    record_id uuid PRIMARY KEY REFERENCES records ON DELETE CASCADE,
    words tsvector NOT NULL
);
CREATE INDEX record_words_found ON record_words USING gin (words);

-- Small letters, also where the database's locale knows of none but the Latin ones without marks, as `C` does.
CREATE FUNCTION small_letters(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT lower(translate(
        said,
        'АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯІЇЄҐЎӘҒҚҢӨҰҮҺÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞŒŠŽĄĆĘŁŃŚŹŻČĎĚŇŘŤŮĞİŞ',
        'абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґўәғқңөұүһàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþœšžąćęłńśźżčďěňřťůğiş'
    ))
$$;

-- The words of a text's first million letters (18 hours of speech) with their places; PostgreSQL's own `russian`
-- takes Latin words for English ones. A text with more words than a tsvector holds must not fail the settle that
-- writes it: then the words stand without their places, which costs the search for phrases alone, and as many of
-- them as fit.
CREATE FUNCTION words_of(said text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    found tsvector := '';
BEGIN
    RETURN to_tsvector('pg_catalog.russian', small_letters(left(said, 1000000)));
EXCEPTION WHEN program_limit_exceeded THEN
    BEGIN
        FOR part IN 0..9 LOOP
            found := found || strip(to_tsvector(
                'pg_catalog.russian', small_letters(substr(said, 1 + part * 100000, 100000))
            ));
        END LOOP;
    EXCEPTION WHEN program_limit_exceeded THEN
        NULL; -- what fits is in `found`
    END;
    RETURN found;
END
$$;

CREATE FUNCTION words_of_record(title text, description text, topics text[], filename text, said text)
RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT words_of(concat_ws(
        E'\n', title, description, array_to_string(topics, E'\n'), translate(filename, '._-/\', '     '), said
    ))
$$;

CREATE FUNCTION note_words_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO record_words (record_id, words)
    SELECT id, words_of_record(title, description, topics, filename, recognised_text) FROM made;
    RETURN NULL;
END
$$;
CREATE TRIGGER records_words_first AFTER INSERT ON records
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION note_words_first();

CREATE FUNCTION note_words_again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE record_words
    SET words = words_of_record(NEW.title, NEW.description, NEW.topics, NEW.filename, NEW.recognised_text)
    WHERE record_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER records_words_again
    AFTER UPDATE OF title, description, topics, filename, recognised_text ON records
    FOR EACH ROW WHEN (
        (OLD.title, OLD.description, OLD.topics, OLD.filename, OLD.recognised_text)
        IS DISTINCT FROM (NEW.title, NEW.description, NEW.topics, NEW.filename, NEW.recognised_text)
    ) EXECUTE FUNCTION note_words_again();

INSERT INTO record_words (record_id, words)
SELECT id, words_of_record(title, description, topics, filename, recognised_text) FROM records;

-- Whoever waits for a record is told its id, once for each transaction that changed what is shown of it. The
-- columns are those that no claim, renewal or wake writes, so none of these ever comes here.
CREATE FUNCTION tell_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('rubezh_changed', NEW.id::text);
    RETURN NULL;
END
$$;
CREATE TRIGGER records_changed
    AFTER UPDATE OF milestone, stop_code, deleted_at, edition, declared_seconds, decoded_seconds,
        audio_warnings, found_language, recognised_seconds, owner_id ON records
    FOR EACH ROW WHEN (
        (OLD.milestone, OLD.stop_code, OLD.deleted_at, OLD.edition, OLD.declared_seconds, OLD.decoded_seconds,
            OLD.audio_warnings, OLD.found_language, OLD.recognised_seconds, OLD.owner_id)
        IS DISTINCT FROM
        (NEW.milestone, NEW.stop_code, NEW.deleted_at, NEW.edition, NEW.declared_seconds, NEW.decoded_seconds,
            NEW.audio_warnings, NEW.found_language, NEW.recognised_seconds, NEW.owner_id)
    ) EXECUTE FUNCTION tell_change();
