-- The owner corrects a segment that is there, on the edition that the owner saw.
WITH seen AS (
    SELECT r.id, r.milestone, s.start_seconds, s.end_seconds
    FROM records AS r JOIN segments AS s ON s.record_id = r.id AND s.slice = %(slice)s AND s.number = %(number)s
    WHERE r.id = %(id)s AND r.owner_id = %(owner_id)s AND r.deleted_at IS NULL
        AND %(edition)s = coalesce((
            SELECT max(c.edition) FROM corrections AS c
            WHERE c.record_id = %(id)s AND c.slice = %(slice)s AND c.number = %(number)s
        ), 0)
), made AS (
    INSERT INTO corrections (record_id, slice, number, edition, text, by, start_seconds, end_seconds)
    SELECT id, %(slice)s, %(number)s, %(edition)s + 1, %(text)s, %(by)s, start_seconds, end_seconds FROM seen
    ON CONFLICT DO NOTHING
    RETURNING record_id, edition
), counted AS (
    UPDATE records SET corrections = corrections + 1 FROM made WHERE id = made.record_id
), noted AS (
    INSERT INTO events (record_id, kind, milestone, by, detail)
    SELECT seen.id, 'edited', seen.milestone, %(by)s,
        jsonb_build_object('fields', '["text"]'::jsonb, 'slice', %(slice)s, 'number', %(number)s, 'edition', made.edition)
    FROM made, seen
)
SELECT edition FROM made
