-- Hold the account's row, so that no record can be accepted for it meanwhile.
SELECT id FROM accounts WHERE id = %(id)s FOR UPDATE
