-- Remove an account and, with it, its tokens; its records forbid it.
DELETE FROM accounts WHERE id = %(id)s
