-- What services elsewhere allow, shared by all workers of all daemons; and nothing is kept twice of an operation there.

-- One row for each that has been asked for. Nobody's clock counts but the database's.
CREATE TABLE quotas (
    name text PRIMARY KEY CHECK (name <> ''),
    -- When the last requests were taken, the oldest first: as many as are allowed in one stretch of time.
    taken timestamptz[] NOT NULL DEFAULT '{}',
    -- Until when the service itself has asked for a pause.
    paused_until timestamptz,
    -- What whoever asked last was told: 0, one was taken; else the seconds until there is one.
    wait_seconds double precision NOT NULL DEFAULT 0 CHECK (wait_seconds >= 0)
) WITH (fillfactor = 50);

-- Its id, and the intent before it has one, are part of `operation`, which each step writes as a whole.
ALTER TABLE records DROP COLUMN operation_id, DROP COLUMN operation_intent;
