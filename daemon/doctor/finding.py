"""What a check found, and what to do about it. No I/O."""

from enum import StrEnum

from attrs import frozen


class State(StrEnum):
    """How a finding is."""

    OK = "ok"
    NOTE = "note"  # nothing is wrong, and a person should know it
    FAULT = "fault"


@frozen(kw_only=True)
class Finding:
    """One thing that was looked at: `told` says what is, `remedy` what to do; only what is well has none."""

    check: str
    state: State
    told: str
    remedy: str = ""


def ok(check: str, told: str) -> Finding:
    """It is well."""
    return Finding(check=check, state=State.OK, told=told)


def note(check: str, told: str, remedy: str) -> Finding:
    """It is worth knowing."""
    return Finding(check=check, state=State.NOTE, told=told, remedy=remedy)


def fault(check: str, told: str, remedy: str) -> Finding:
    """It keeps the service, or a part of it, from working."""
    return Finding(check=check, state=State.FAULT, told=told, remedy=remedy)


def fault_of(check: str, error: Exception, otherwise: str) -> Finding:
    """Return an error as a finding: a sentence of ours ends in its remedy, after a semicolon."""
    if isinstance(error, OSError):
        return fault(check, f"{error.filename or 'something'} cannot be used ({error.strerror})", otherwise)
    told, semicolon, remedy = " ".join(str(error).split()).rpartition("; ")
    return fault(check, told, remedy) if semicolon else fault(check, remedy, otherwise)
