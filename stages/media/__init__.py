"""Decoding recordings in a child process: bytes nobody vouches for never meet the daemon's own memory."""
