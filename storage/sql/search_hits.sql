-- Where in these texts the words stand that are searched for: of each record the segments that hold most of them,
-- the earlier first, with the words marked. What is found in a record together may stand apart in it, so a segment
-- need not hold all of them; words that must not be there are no reason to show one.
WITH asked AS (
    SELECT replace(querytree(websearch_to_tsquery('pg_catalog.russian', small_letters(%(search)s))), ' & ', ' | ')
        AS words
), wanted AS (
    SELECT words::tsquery AS words FROM asked WHERE words NOT IN ('', 'T')
)
SELECT found.record_id, found.start_seconds, found.text,
    ts_headline('pg_catalog.russian', small_letters(found.text), wanted.words,
        'HighlightAll=true, StartSel=' || chr(57344) || ', StopSel=' || chr(57345)) AS marked
FROM wanted, unnest(%(ids)s::uuid[]) AS asked_for (record_id)
CROSS JOIN LATERAL (
    SELECT s.record_id, s.slice, s.number, s.start_seconds, s.said AS text, ts_rank(spoken.words, wanted.words) AS rank
    FROM owned_segments AS s, LATERAL (SELECT to_tsvector('pg_catalog.russian', small_letters(s.said)) AS words) AS spoken
    WHERE s.record_id = asked_for.record_id AND spoken.words @@ wanted.words
    ORDER BY rank DESC, s.slice, s.number
    LIMIT %(limit)s
) AS found
ORDER BY found.record_id, found.slice, found.number
