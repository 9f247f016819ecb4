"""Real processes, real PostgreSQL, real signals."""
