-- Keys whose days are over, and those whose holder died long ago.
DELETE FROM submission_keys
WHERE lease_until < clock_timestamp()
  AND taken_at < clock_timestamp() - make_interval(secs => %(kept_seconds)s)
