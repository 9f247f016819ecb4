-- The claims since the record last came further, deferred or was lifted, each with its end, the newest first; what
-- was given back is passed over, as it is no failure.
SELECT claim.at, claim.by, ended.at AS ended_at, ended.kind, ended.detail ->> 'cause' AS cause,
    claim.token IS NOT DISTINCT FROM r.claim_token AND r.lease_until > clock_timestamp() AS is_running
FROM records AS r
JOIN events AS claim ON claim.record_id = r.id AND claim.kind = 'claimed'
LEFT JOIN events AS ended ON ended.token = claim.token AND ended.settles
WHERE r.id = %(id)s
    AND ended.kind IS DISTINCT FROM 'given_back'
    AND claim.id > coalesce((
        SELECT max(reset.id) FROM events AS reset
        WHERE reset.record_id = r.id
            AND (reset.kind IN ('reached', 'deferred', 'lifted') OR reset.detail ? 'failures_reset')
    ), 0)
ORDER BY claim.id DESC
LIMIT 20
