-- What is in hand: whose record, at which milestone, by whom, and for how long. None of the owner's words.
SELECT r.id, a.name AS owner, r.milestone, r.lane, r.claimed_by AS run, r.failures,
    greatest(extract(epoch FROM clock_timestamp() - r.claimed_at), 0)::float8 AS held_seconds,
    r.recognised_seconds, r.decoded_seconds AS audio_seconds
FROM records AS r JOIN accounts AS a ON a.id = r.owner_id
WHERE r.claim_token IS NOT NULL
ORDER BY r.claimed_at, r.id
LIMIT 200
