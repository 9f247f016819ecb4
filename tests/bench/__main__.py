"""Runs the benchmarks named on the command line: `python -m tests.bench [claims] [pipeline] [memory]`.

Without names: claims and pipeline; `memory` transcribes two hours and takes its time.
"""

import argparse

from tests.bench import claims, memory, pipeline
from tests.bench.table import load, machine, say


def main() -> None:
    """Read the command line and run what it names."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="claims | pipeline | memory", default=["claims", "pipeline"]
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each side is measured (default: 3)")
    parser.add_argument("--minutes", type=float, default=10, help="audio for pipeline (default: 10)")
    parser.add_argument("--hours", type=float, default=2, help="audio for memory (default: 2)")
    given = parser.parse_args()
    runs = {
        "claims": lambda: claims.run(given.rounds),
        "pipeline": lambda: pipeline.run(given.rounds, given.minutes * 60),
        "memory": lambda: memory.run(given.hours * 3600),
    }
    if unknown := set(given.names) - set(runs):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    say(machine())
    say(f"load {load()}")
    for name in given.names:
        runs[name]()


if __name__ == "__main__":
    main()
