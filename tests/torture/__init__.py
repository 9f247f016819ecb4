"""Real daemons on a real PostgreSQL under every fault a machine, an operator and an owner can make."""
