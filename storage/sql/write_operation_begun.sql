-- A recognition begins anew: nothing of an earlier operation's progress is left.
UPDATE records
SET recogniser = %(recogniser)s,
    operation = %(operation)s,
    recognised_seconds = 0,
    recognised_text = NULL,
    found_language = NULL
WHERE id = %(id)s AND claim_token = %(token)s
