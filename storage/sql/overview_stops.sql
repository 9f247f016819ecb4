-- How many records are stopped, by reason.
SELECT stop_code AS code, count(*) AS records, max(stopped_at) AS latest
FROM records
WHERE stop_code IS NOT NULL AND deleted_at IS NULL
GROUP BY stop_code
ORDER BY count(*) DESC, stop_code
