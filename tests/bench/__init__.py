"""Benchmarks: `python -m tests.bench`. They measure and print; they never judge."""
