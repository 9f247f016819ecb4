-- The whole text as recognised, once, when the recognition is finished.
UPDATE records
SET recognised_text = coalesce(
    (SELECT string_agg(text, ' ' ORDER BY slice, number) FROM segments WHERE record_id = %(id)s AND text <> ''), ''
)
WHERE id = %(id)s AND claim_token = %(token)s
