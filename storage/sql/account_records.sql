-- How many records stand in the way of removing an account, deleted ones included.
SELECT count(*) FROM records WHERE owner_id = %(id)s
