-- The newest step taken.
SELECT coalesce(max(number), 0) FROM migrations
