-- How many segments a record has so far, and how many of them begin before a second of the audio.
SELECT count(*)::integer AS number, (count(*) FILTER (WHERE start_seconds <= %(second)s))::integer AS before
FROM segments WHERE record_id = %(id)s
