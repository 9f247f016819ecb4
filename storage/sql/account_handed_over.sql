-- Every record of one account becomes another's, deleted ones too; each tells of it.
WITH handed AS (
    UPDATE records SET owner_id = %(owner_id)s WHERE owner_id = %(account_id)s
    RETURNING id, milestone
)
INSERT INTO events (record_id, kind, milestone, by, detail)
SELECT handed.id, 'handed_over', handed.milestone, %(by)s,
    jsonb_build_object('from', giver.name, 'to', taker.name)
FROM handed, accounts AS giver, accounts AS taker
WHERE giver.id = %(account_id)s AND taker.id = %(owner_id)s
