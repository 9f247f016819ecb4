-- How far the recognition is.
UPDATE records
SET operation = %(operation)s,
    recognised_seconds = %(recognised_seconds)s,
    found_language = %(found_language)s
WHERE id = %(id)s AND claim_token = %(token)s
