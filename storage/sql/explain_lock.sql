-- The row lock that a claim takes, which passes over a row that somebody else has locked.
SELECT id FROM records WHERE id = %(id)s FOR UPDATE SKIP LOCKED
