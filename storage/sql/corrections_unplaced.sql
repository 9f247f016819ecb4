-- What the owner wrote of pieces that are no segment any more, since their recognition began anew.
SELECT last.start_seconds AS start, last.text, last.at, last.by
FROM (
    SELECT DISTINCT ON (slice, number) record_id, slice, number, start_seconds, text, at, by
    FROM corrections
    WHERE record_id = %(id)s
    ORDER BY slice, number, edition DESC
) AS last
LEFT JOIN owned_segments AS own
    ON own.record_id = last.record_id AND own.slice = last.slice AND own.number = last.number
WHERE last.text IS NOT NULL AND own.corrected IS NULL
ORDER BY last.start_seconds
LIMIT %(limit)s
