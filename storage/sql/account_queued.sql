-- Seconds of audio that an account has in the queue; by its size while the length of a recording is unknown.
SELECT coalesce(sum(greatest(
    coalesce(decoded_seconds, declared_seconds, source_bytes / %(bytes_per_second)s) - recognised_seconds, 0
)), 0)
FROM records
WHERE owner_id = %(owner_id)s AND stop_code IS NULL AND deleted_at IS NULL AND milestone <> 'done'
