-- Was this record accepted?
SELECT 1 FROM records WHERE id = %(id)s
