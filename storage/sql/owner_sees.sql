-- Whether a record is there for this owner (or for the service owner), and in what state.
SELECT milestone, stop_code IS NOT NULL AS stopped, deleted_at IS NOT NULL AS deleted
FROM records
WHERE id = %(id)s AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
