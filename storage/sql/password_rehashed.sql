-- The same password under today's cost, unless it was changed meanwhile.
UPDATE accounts SET password_hash = %(new)s WHERE id = %(id)s AND password_hash = %(old)s
