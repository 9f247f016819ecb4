"""The watch folder: a recording that is put into an account's folder becomes a record, and is moved aside."""

from daemon.watching.watch import Watch

__all__ = ["Watch"]
