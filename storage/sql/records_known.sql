-- Which of these records have a row, deleted ones included.
SELECT id FROM records WHERE id = ANY(%(ids)s)
