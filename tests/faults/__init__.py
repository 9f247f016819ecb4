"""Faults at every point of an attempt or a call: cancelled at each step, its wire failing at each message."""
