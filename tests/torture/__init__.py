"""Real daemons on a real PostgreSQL, and all that may happen to them; then the events must add up."""
