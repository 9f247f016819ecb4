-- The owner edits what is the owner's: only what is given (not NULL) is written, and only on the edition that the
-- owner saw, if one is named.
WITH edited AS (
    UPDATE records
    SET title = coalesce(%(title)s, title), description = coalesce(%(description)s, description),
        topics = coalesce(%(topics)s::text[], topics),
        left_name = coalesce(%(left_name)s, left_name), right_name = coalesce(%(right_name)s, right_name),
        edition = edition + 1
    WHERE id = %(id)s AND owner_id = %(owner_id)s AND deleted_at IS NULL
        AND (%(edition)s::integer IS NULL OR edition = %(edition)s)
    RETURNING id, milestone, edition
), noted AS (
    INSERT INTO events (record_id, kind, milestone, by, detail)
    SELECT id, 'edited', milestone, %(by)s, jsonb_build_object('edition', edition, 'fields', %(fields)s::text[])
    FROM edited
)
SELECT edition FROM edited
