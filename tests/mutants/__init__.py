"""Faults planted on purpose, each in a copy of the project: the test that is named for it must fail on it."""
