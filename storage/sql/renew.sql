-- Push the leases of all claims this process holds, each by the number written at its claim.
-- A token that does not come back is no longer anybody's claim.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
UPDATE records
SET lease_until = clock.now + make_interval(secs => lease_seconds),
    wake_at = clock.now + make_interval(secs => lease_seconds)
FROM clock
WHERE claim_token = ANY (%(tokens)s)
RETURNING claim_token, lease_seconds
