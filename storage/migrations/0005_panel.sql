-- People: whose account runs the service, and how somebody at a browser proves who they are.

ALTER TABLE accounts
    ADD COLUMN is_service_owner boolean NOT NULL DEFAULT false,
    ADD COLUMN password_hash text; -- argon2id in its own notation; NULL: nobody signs in with a password

-- Who is signed in at a browser. The secret is in the browser's cookie alone; `until` moves with its use.
CREATE TABLE sessions (
    secret_sha256 bytea PRIMARY KEY CHECK (octet_length(secret_sha256) = 32),
    account_id uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    until timestamptz NOT NULL
);
CREATE INDEX sessions_account ON sessions (account_id);
CREATE INDEX sessions_until ON sessions (until);

-- Links that sign somebody in once: the row goes with its use.
CREATE TABLE sign_in_links (
    secret_sha256 bytea PRIMARY KEY CHECK (octet_length(secret_sha256) = 32),
    account_id uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
    until timestamptz NOT NULL
);
CREATE INDEX sign_in_links_account ON sign_in_links (account_id);
