-- How the claim before this one ended, if it had an end; what was given back is passed over, as it is no failure.
SELECT claim.at, ended.kind, ended.detail ->> 'cause' AS cause, ended.detail ->> 'fault' AS fault
FROM events AS claim
LEFT JOIN events AS ended ON ended.token = claim.token AND ended.settles
WHERE claim.record_id = %(id)s AND claim.kind = 'claimed' AND claim.token <> %(token)s
    AND ended.kind IS DISTINCT FROM 'given_back'
ORDER BY claim.id DESC
LIMIT 1
