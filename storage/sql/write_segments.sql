-- The segments of the slices just recognised, after the guarded update has locked their record.
INSERT INTO segments (record_id, slice, number, start_seconds, end_seconds, text, words, side, language, gap)
SELECT %(id)s, new.slice, new.number, new.start, new.end, new.text, new.words, new.side, new.language, new.gap
FROM jsonb_to_recordset(%(segments)s)
    AS new (slice integer, number integer, start float8, "end" float8, text text, words jsonb,
        side text, language text, gap text)
