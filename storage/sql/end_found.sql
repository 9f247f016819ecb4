-- How the attempt with this token ended, if it did: the answer to its settle may have been lost.
SELECT detail ->> 'code' AS stop_code FROM events WHERE token = %(token)s AND settles
