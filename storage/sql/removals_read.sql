-- What is to go from this store.
SELECT record_id FROM removals WHERE store_id = %(store_id)s ORDER BY asked_at LIMIT %(limit)s
