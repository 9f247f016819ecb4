"""The doors: recordings go in, readiness polls are answered; how records are worked on is not known here."""

from daemon.intake.app import intake_app
from daemon.intake.compatible.wish import ALIAS
from daemon.intake.doors import adopt
from daemon.intake.polls import Polls
from daemon.intake.service import Inside

__all__ = ["ALIAS", "Inside", "Polls", "adopt", "intake_app"]
