-- A recognition begins anew: what an earlier one said goes first.
DELETE FROM segments WHERE record_id = %(id)s
