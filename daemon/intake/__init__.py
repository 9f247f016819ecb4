"""The doors: recordings go in, readiness polls are answered; how records are worked on is not known here."""

from daemon.intake.app import intake_app

__all__ = ["intake_app"]
