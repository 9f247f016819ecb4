-- A slice is written whole: what an earlier recognition said of it goes first.
DELETE FROM segments WHERE record_id = %(id)s AND slice = ANY (%(slices)s)
