-- A link that signs in once.
INSERT INTO sign_in_links (secret_sha256, account_id, until)
VALUES (%(secret_sha256)s, %(account_id)s, clock_timestamp() + make_interval(secs => %(seconds)s))
