-- A migration may wait for another process's, and a long step must not be cut half-way.
SELECT set_config('statement_timeout', '0', true)
