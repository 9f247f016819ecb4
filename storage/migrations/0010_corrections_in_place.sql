-- A recognition may begin anew and cut the speech otherwise: then the same slice and number are another piece of it.
-- So a correction knows which seconds it is about, and counts only where the segment is still about these.

ALTER TABLE corrections
    ADD COLUMN start_seconds double precision NOT NULL DEFAULT 0,
    ADD COLUMN end_seconds double precision NOT NULL DEFAULT 0;
UPDATE corrections AS c SET start_seconds = s.start_seconds, end_seconds = s.end_seconds
FROM segments AS s WHERE s.record_id = c.record_id AND s.slice = c.slice AND s.number = c.number;
ALTER TABLE corrections ALTER COLUMN start_seconds DROP DEFAULT, ALTER COLUMN end_seconds DROP DEFAULT;

CREATE OR REPLACE VIEW owned_segments AS
SELECT s.record_id, s.slice, s.number, s.start_seconds, s.end_seconds, s.text, s.words, s.side, s.language, s.gap,
    coalesce(c.edition, 0) AS edition,
    CASE WHEN c.fits THEN c.text END AS corrected,
    coalesce(CASE WHEN c.fits THEN c.text END, s.text) AS said
FROM segments AS s
LEFT JOIN LATERAL (
    SELECT last.edition, last.text,
        -- At least half of the longer one is in both.
        least(last.end_seconds, s.end_seconds) - greatest(last.start_seconds, s.start_seconds)
            >= 0.5 * greatest(last.end_seconds - last.start_seconds, s.end_seconds - s.start_seconds) AS fits
    FROM corrections AS last
    WHERE last.record_id = s.record_id AND last.slice = s.slice AND last.number = s.number
    ORDER BY last.edition DESC
    LIMIT 1
) AS c ON true;
