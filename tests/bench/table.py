"""What every benchmark prints: the machine it ran on, its load, and a table."""

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path


def machine() -> str:
    """Return the facts without which a number says nothing."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{cpu}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, Linux {platform.release()}, "
        f"Python {platform.python_version()}"
    )


def load() -> str:
    """Return the load averages of the last 1, 5 and 15 minutes."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def show(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], notes: Iterable[str] = ()
) -> None:
    """Print a table with its title, and notes under it."""
    cells = [[_worded(value) for value in row] for row in rows]
    widths = [max(len(row[place]) for row in [list(heads), *cells]) for place in range(len(heads))]
    say(f"\n{title}")
    for row in [list(heads), ["-" * width for width in widths], *cells]:
        say("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    for note in notes:
        say(f"  {note}")


def say(line: str) -> None:
    """Print one line at once: a benchmark takes its time."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _worded(value: object) -> str:
    return (
        f"{value:.3g}"
        if isinstance(value, float) and abs(value) < 100
        else f"{value:.0f}"
        if isinstance(value, float)
        else str(value)
    )
