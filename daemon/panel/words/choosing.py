"""Which language a browser asks for (RFC 9110, Accept-Language). No I/O."""

import re
from collections.abc import Sequence

_RANGE = re.compile(
    r"(?P<tag>[A-Za-z]{1,8}|\*)(-[A-Za-z0-9-]{1,40})?\s*(;\s*q=(?P<quality>[01](\.\d{0,3})?))?"
)


def preferred(accepted: str, spoken: Sequence[str]) -> str:
    """Return the first of the `spoken` languages that is asked for most; the first of all for none."""
    best, best_quality = spoken[0], 0.0
    for part in accepted[:500].split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or match["tag"].lower() not in spoken:
            continue
        quality = float(match["quality"] or 1)
        if quality > best_quality:
            best, best_quality = match["tag"].lower(), quality
    return best
