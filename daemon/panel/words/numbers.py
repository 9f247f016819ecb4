"""Numbers, times and sizes as a person reads them. No I/O."""

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_LAST_TEENS = range(11, 15)


def plural_form(language: str, number: int, forms: int) -> int:
    """Return which form a number takes: one and many in English; one, few and many in Russian."""
    if language != "ru":
        return 0 if number == 1 else forms - 1
    if number % 100 in _LAST_TEENS or number % 10 in (0, 5, 6, 7, 8, 9):
        return forms - 1
    return 0 if number % 10 == 1 else min(1, forms - 1)


def clock(seconds: float) -> str:
    """Return a length of audio as players write it: 0:07, 42:15, 4:00:00."""
    whole = int(max(seconds, 0))
    hours, rest = divmod(whole, _HOUR)
    minutes, left = divmod(rest, _MINUTE)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def iso_length(seconds: float) -> str:
    """Return a length for machines, as `datetime=` of a time element takes it."""
    return f"PT{max(int(seconds), 0)}S"


def stretch(seconds: float) -> tuple[str, int]:
    """Return a stretch of time as a unit (`seconds`, `minutes`, `hours`, `days`) and how many, rounded up."""
    for unit, size, until in (
        ("seconds", 1, 60),
        ("minutes", _MINUTE, 90 * _MINUTE),
        ("hours", _HOUR, 2 * _DAY),
    ):
        if seconds < until:
            return unit, max(-int(-seconds // size), 1)
    return "days", -int(-seconds // _DAY)


def iso(moment: datetime) -> str:
    """Return a moment for machines."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def day_and_time(moment: datetime) -> str:
    """Return a moment for people, in UTC; a script has it in their own zone."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
