"""The process: supervision tree, workers, doors, systemd, logs, settings, command line."""
