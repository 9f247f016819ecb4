-- Signs of life: what each running daemon claims and what keeps it from claiming, said anew every few seconds.
-- Nothing of the protocol reads them; they tell the service owner why a record is not claimed.

CREATE TABLE daemons (
    run text PRIMARY KEY CHECK (run <> ''), -- as the events name it
    host text NOT NULL,
    pid integer NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat_at timestamptz NOT NULL,
    beat_seconds double precision NOT NULL CHECK (beat_seconds > 0), -- until the next sign is due
    workers integer NOT NULL CHECK (workers >= 0), -- those that claim: none during a stop
    failures_limit integer NOT NULL,
    stores uuid[] NOT NULL,
    milestones text[] NOT NULL,
    lanes jsonb NOT NULL -- of each: name, slots, busy, closed_because
) WITH (fillfactor = 50);
