-- What became done in each of the last 24 hours, this one last; and how much audio that was. No more events are
-- read than a bound: where there were more in a day, the hours before them have no number rather than a wrong one.
WITH newest AS MATERIALIZED (
    SELECT record_id, at, kind, milestone FROM events ORDER BY id DESC LIMIT %(limit)s
), read AS (
    SELECT count(*) >= %(limit)s AS is_cut, min(at) AS since FROM newest
), hours AS (
    SELECT generate_series(
        date_trunc('hour', clock_timestamp()) - interval '23 hours', date_trunc('hour', clock_timestamp()), '1 hour'
    ) AS hour
)
SELECT hours.hour,
    CASE WHEN (SELECT is_cut AND since > hours.hour FROM read) THEN NULL ELSE count(n.record_id) END AS records,
    coalesce(sum(r.decoded_seconds), 0) AS audio_seconds
FROM hours
LEFT JOIN newest AS n ON n.kind = 'reached' AND n.milestone = 'done'
    AND n.at >= hours.hour AND n.at < hours.hour + interval '1 hour'
LEFT JOIN records AS r ON r.id = n.record_id
GROUP BY hours.hour
ORDER BY hours.hour
