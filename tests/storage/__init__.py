"""The tests of storage."""
