-- Does the database know this store?
SELECT 1 FROM stores WHERE id = %(id)s
