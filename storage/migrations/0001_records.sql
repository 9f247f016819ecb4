-- Accounts, tokens, records, segments and events: everything the claim protocol stands on.

CREATE TABLE installation (
    id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one)
);

-- A folder of audio. Its root carries this id and the installation's, so a wrong mount is refused at start.
CREATE TABLE stores (
    id uuid PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE accounts (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    disabled_at timestamptz
);

CREATE TABLE tokens (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
    name text NOT NULL,
    secret_sha256 bytea NOT NULL UNIQUE CHECK (octet_length(secret_sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX tokens_account ON tokens (account_id, created_at);

CREATE TABLE records (
    id uuid PRIMARY KEY,
    -- No record is nobody's, so there is always somebody who may ask for its outcome.
    owner_id uuid NOT NULL REFERENCES accounts ON DELETE RESTRICT,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    -- The owner's own columns: the pipeline never writes them; `edition` is their version.
    title text NOT NULL DEFAULT '',
    description text NOT NULL DEFAULT '',
    topics text[] NOT NULL DEFAULT '{}',
    asked_language text,
    edition integer NOT NULL DEFAULT 1,

    -- As submitted.
    filename text NOT NULL,
    channels text NOT NULL DEFAULT 'auto' CHECK (channels IN ('mix', 'split', 'auto')),
    track integer CHECK (track >= 0),
    hotwords text NOT NULL DEFAULT '',
    store_id uuid NOT NULL REFERENCES stores,
    source_path text NOT NULL,
    source_bytes bigint NOT NULL CHECK (source_bytes > 0),
    source_sha256 bytea NOT NULL CHECK (octet_length(source_sha256) = 32),
    fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32),

    -- The queue's. `wake_at` is when the record becomes a candidate again: the end of its lease while it is
    -- held, the end of its delay while it is deferred; NULL means it waits for nothing but a claimer.
    milestone text NOT NULL DEFAULT 'created'
        CHECK (milestone IN ('created', 'converted', 'transcribe', 'done')),
    milestone_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    milestone_seconds double precision NOT NULL DEFAULT 0 CHECK (milestone_seconds >= 0),
    lane text,
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    wake_at timestamptz,
    claim_token uuid,
    claimed_by text,
    claimed_at timestamptz,
    lease_seconds double precision CHECK (lease_seconds > 0),
    lease_until timestamptz,

    -- The stop flag, with its full reason.
    stop_code text,
    stop_reason text,
    stopped_at timestamptz,
    stopped_by text,

    deleted_at timestamptz,

    -- The conversion's.
    audio_path text,
    declared_seconds double precision,
    decoded_seconds double precision,
    audio_warnings text[] NOT NULL DEFAULT '{}',

    -- The recognition's. `operation` is all the recogniser needs to go on; the remote id is stored before
    -- the first poll, and the intent before the start call whose answer may be lost.
    recogniser text,
    operation jsonb,
    operation_id text,
    operation_intent uuid,
    found_language text,
    recognised_seconds double precision NOT NULL DEFAULT 0,
    recognised_text text,

    CONSTRAINT claim_is_whole CHECK (
        (claim_token IS NULL) = (claimed_at IS NULL)
        AND (claim_token IS NULL) = (claimed_by IS NULL)
        AND (claim_token IS NULL) = (lease_seconds IS NULL)
        AND (claim_token IS NULL) = (lease_until IS NULL)
    ),
    CONSTRAINT stop_is_whole CHECK (
        (stop_code IS NULL) = (stop_reason IS NULL)
        AND (stop_code IS NULL) = (stopped_at IS NULL)
        AND (stop_code IS NULL) = (stopped_by IS NULL)
    ),
    CONSTRAINT out_of_work_is_unheld CHECK (
        claim_token IS NULL OR (stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done')
    ),
    CONSTRAINT done_has_no_lane CHECK ((lane IS NULL) = (milestone = 'done'))
) WITH (
    -- Half of a claim's updates stay on their page; the queue's dead rows are swept early and often.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- What waits for a claimer, in the order of the claim, per lane and store.
CREATE INDEX records_awake ON records (lane, store_id, created_at, id)
    WHERE wake_at IS NULL AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done';
-- What is held or deferred, by the moment it becomes a candidate again.
CREATE INDEX records_asleep ON records (wake_at)
    WHERE wake_at IS NOT NULL AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done';
-- What may have failed too often: needs no slot, so it must be found past any closed lane.
CREATE INDEX records_failing ON records (failures)
    WHERE failures > 0 AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done';
CREATE UNIQUE INDEX records_claim ON records (claim_token) WHERE claim_token IS NOT NULL;
CREATE INDEX records_owner ON records (owner_id, created_at DESC, id DESC);
CREATE INDEX records_fingerprint ON records (owner_id, fingerprint);

CREATE TABLE segments (
    record_id uuid NOT NULL REFERENCES records ON DELETE CASCADE,
    slice integer NOT NULL CHECK (slice >= 0),
    number integer NOT NULL CHECK (number >= 0),
    start_seconds double precision NOT NULL CHECK (start_seconds >= 0),
    end_seconds double precision NOT NULL CHECK (end_seconds >= start_seconds),
    text text NOT NULL,
    words jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (record_id, slice, number)
);

CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    record_id uuid NOT NULL REFERENCES records ON DELETE CASCADE,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind text NOT NULL CHECK (kind IN (
        'accepted', 'claimed',
        'reached', 'deferred', 'failed', 'timed_out', 'given_back', 'stopped',
        'lifted', 'deleted', 'undeleted', 'edited'
    )),
    milestone text NOT NULL,
    -- The claim this event belongs to. One claim has one end at most: a settle whose answer was lost finds
    -- its own end here.
    token uuid,
    settles boolean NOT NULL DEFAULT false,
    by text NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}',
    CHECK (NOT settles OR token IS NOT NULL)
);
CREATE INDEX events_record ON events (record_id, id);
CREATE UNIQUE INDEX events_settled ON events (token) WHERE settles;
