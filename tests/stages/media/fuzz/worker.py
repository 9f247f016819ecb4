"""One process that decodes one file after another, as the decoding child does with its one.

A line in: source, target, and whether to count what was executed. A line out: the answer, as JSON.
"""

import json
import os
import sys
from pathlib import Path
from types import CodeType, FrameType

from stages.media.child import answer
from stages.media.messages import Channels, Request, answer_to_json

LONGEST_SECONDS = 600.0
_OURS = f"{os.sep}stages{os.sep}media{os.sep}"


class Counting:
    """Counts the lines of the converter that are executed."""

    def __init__(self) -> None:
        self.lines: set[tuple[CodeType, int]] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> "Counting | None":
        """Note a line, as `sys.settrace` tells of it."""
        if _OURS not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.lines.add((frame.f_code, frame.f_lineno))
        return self


def main() -> None:
    """Answer until stdin ends."""
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # as the child does
    for line in sys.stdin:
        source, target, channels, counted = json.loads(line)
        request = Request(
            source=source,
            target=target,
            track=None,
            channels=Channels(channels),
            longest_seconds=LONGEST_SECONDS,
        )
        counting = Counting()
        if counted:
            sys.settrace(counting)
        last = answer(request, lambda _: None)
        sys.settrace(None)
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE") >> 20
        wire.write(
            json.dumps({"answer": answer_to_json(last), "lines": len(counting.lines), "memory": memory})
            + "\n"
        )


if __name__ == "__main__":
    main()
