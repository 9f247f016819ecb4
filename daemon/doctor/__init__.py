"""A check-up of one installation: it changes nothing, is bounded, and ends in findings with remedies."""

from daemon.doctor.examining import examine
from daemon.doctor.finding import Finding, State

__all__ = ["Finding", "State", "examine"]
