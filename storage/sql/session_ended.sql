-- One browser is signed out.
DELETE FROM sessions WHERE secret_sha256 = %(secret_sha256)s
