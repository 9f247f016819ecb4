-- Which of these uploads are unfinished and may still be continued.
SELECT id FROM uploads WHERE id = ANY(%(ids)s) AND finished_at IS NULL
