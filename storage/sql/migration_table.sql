-- Where the schema says how far it is.
CREATE TABLE IF NOT EXISTS migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    done_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
