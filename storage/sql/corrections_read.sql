-- What a segment was corrected to, the last one first.
SELECT edition, text, at, by FROM corrections
WHERE record_id = %(id)s AND slice = %(slice)s AND number = %(number)s
ORDER BY edition DESC
LIMIT %(limit)s
