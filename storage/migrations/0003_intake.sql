-- The intake: keys under which a submission may be sent again, resumable uploads, and what is to leave a store.

-- One row for each Idempotency-Key of an account. While its submission is received `holder` has it, until
-- `lease_until`; with the record it becomes used, in one transaction, and is kept for the days of a key.
CREATE TABLE submission_keys (
    account_id uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
    key text NOT NULL CHECK (key <> ''),
    holder uuid NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL,
    record_id uuid REFERENCES records ON DELETE CASCADE,
    payload_sha256 bytea CHECK (octet_length(payload_sha256) = 32),
    answer json, -- the first one that was given, as it was; nobody is given another
    PRIMARY KEY (account_id, key),
    CONSTRAINT used_key_is_whole CHECK ((record_id IS NULL) = (payload_sha256 IS NULL)),
    CONSTRAINT answer_is_of_a_record CHECK (answer IS NULL OR record_id IS NOT NULL)
);
CREATE INDEX submission_keys_age ON submission_keys (taken_at);
CREATE INDEX submission_keys_record ON submission_keys (record_id) WHERE record_id IS NOT NULL;

-- A resumable upload; the record it becomes has the same id. Bytes are counted in `received` once they are
-- flushed. The last of them are counted only in the transaction that makes the record, so all are received
-- exactly when it is finished.
CREATE TABLE uploads (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
    store_id uuid NOT NULL REFERENCES stores,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL, -- the end of its lease, moved on by every byte that is counted
    bytes bigint NOT NULL CHECK (bytes > 0),
    received bigint NOT NULL DEFAULT 0 CHECK (received BETWEEN 0 AND bytes),
    metadata text NOT NULL, -- as it was sent
    options jsonb NOT NULL, -- what was understood of it
    holder uuid, -- whose writes count: of the request that came last
    finished_at timestamptz,
    CONSTRAINT all_received_is_finished CHECK ((received = bytes) = (finished_at IS NOT NULL))
);
CREATE INDEX uploads_account ON uploads (account_id);
CREATE INDEX uploads_lease ON uploads (expires_at);

-- Records that are gone from the database for good and have yet to go from their store. A missing row is no
-- licence to remove a record's bytes; a row here is.
CREATE TABLE removals (
    record_id uuid PRIMARY KEY,
    store_id uuid NOT NULL REFERENCES stores,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX removals_store ON removals (store_id);

-- What an account has in the queue, and what waits for the end of its days after a deletion.
CREATE INDEX records_queued ON records (owner_id)
    WHERE stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done';
CREATE INDEX records_deleted ON records (deleted_at) WHERE deleted_at IS NOT NULL;

ALTER TABLE events DROP CONSTRAINT events_kind_check;
ALTER TABLE events ADD CONSTRAINT events_kind_check CHECK (kind IN (
    'accepted', 'claimed',
    'reached', 'deferred', 'failed', 'timed_out', 'given_back', 'stopped',
    'lifted', 'deleted', 'undeleted', 'edited', 'handed_over'
));
