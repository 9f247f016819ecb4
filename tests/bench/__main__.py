"""Runs the benchmarks that are named, without names all but the last two: `python -m tests.bench [NAME ...]`.

claims: claims and settles by Trio and by asyncio. cost: what a claim costs beside a long history and under
an old snapshot. start: from accept to the first stage. idle: the statements of an idle service. peers: the
same job through other queues. pipeline: the cost around the model. convert: decoding beside FFmpeg's
own. doors: polls and submissions beside bare routes. waits: a thousand polls that wait. words: right, wrong
and missing ones in joined speech. memory: over two hours of audio.
"""

import argparse
from collections.abc import Callable

from tests.bench import (
    claims,
    convert,
    doors,
    memory,
    pipeline,
    queue_cost,
    queue_idle,
    queue_peers,
    queue_start,
    waits,
    words,
)
from tests.bench.table import load, machine, say

NAMES = (
    "claims",
    "cost",
    "start",
    "idle",
    "peers",
    "pipeline",
    "convert",
    "doors",
    "waits",
    "words",
    "memory",
)


def main() -> None:
    """Read the command line and run what it names."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" | ".join(NAMES))
    parser.add_argument("--rounds", type=int, default=3, help="how often each side is measured (default: 3)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=10,
        help="audio for pipeline, and of a recording for words (default: 10)",
    )
    parser.add_argument("--recordings", type=int, default=10, help="for words (default: 10)")
    parser.add_argument("--hours", type=float, default=2, help="audio for memory (default: 2)")
    given = parser.parse_args()
    runs: dict[str, Callable[[], None]] = {
        "claims": lambda: claims.run(given.rounds),
        "cost": queue_cost.run,
        "start": queue_start.run,
        "idle": queue_idle.run,
        "peers": lambda: queue_peers.run(given.rounds),
        "pipeline": lambda: pipeline.run(given.rounds, given.minutes * 60),
        "convert": lambda: convert.run(given.rounds),
        "doors": lambda: doors.run(given.rounds),
        "waits": lambda: waits.run(given.rounds),
        "words": lambda: words.run(given.recordings, given.minutes * 60),
        "memory": lambda: memory.run(given.hours * 3600),
    }
    if unknown := set(given.names) - set(runs):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    say(machine())
    say(f"load {load()}")
    for name in given.names or NAMES[:-2]:
        runs[name]()


if __name__ == "__main__":
    main()
