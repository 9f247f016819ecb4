-- What happened at the claims before this one: the newest first, each with its end if it had one.
SELECT claim.at, ended.kind, ended.detail ->> 'cause' AS cause
FROM events AS claim
LEFT JOIN events AS ended ON ended.token = claim.token AND ended.settles
WHERE claim.record_id = %(id)s AND claim.kind = 'claimed' AND claim.token <> %(token)s
ORDER BY claim.id DESC
LIMIT 1
