"""What happens to a record between two milestones; one module per stage."""
