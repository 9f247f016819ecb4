-- What there is to listen to of a record, and to see of it.
SELECT path, media, peaks, failed_because FROM listening_copies WHERE record_id = %(record_id)s
