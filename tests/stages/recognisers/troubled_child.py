"""A recognising child with real troubles: its model's folder says where it crashes, hangs, or just ends.

It says "words" for each second of a slice, which is as long as it may be.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from stages.media.wave64 import RATE
from stages.recognisers.whisper_messages import (
    Answer,
    Begun,
    Cut,
    Failed,
    FailureKind,
    Finished,
    Piece,
    answer_to_json,
    request_from_json,
)


def main() -> None:
    """Answer requests until there are no more."""
    troubles = json.loads(Path("troubles.json").read_text())
    for line in sys.stdin:
        asked = request_from_json(json.loads(line))
        start = asked.start_sample // RATE
        end = min(start + int(asked.longest), troubles["whole"])
        if troubles.get("dies_first"):
            sys.exit(1)
        if troubles.get("unreadable"):
            say(Failed(kind=FailureKind.AUDIO, reason="the disk cannot be read"))
            continue
        if troubles.get("too_small"):
            say(Failed(kind=FailureKind.MEMORY, reason="the model does not fit"))
            continue
        say(Cut(next_sample=end * RATE, total_samples=troubles["whole"] * RATE))
        say(Begun())
        for second in range(start, end):
            if second in troubles["crashes"]:
                os.kill(os.getpid(), signal.SIGSEGV)
            if second in troubles["hangs"]:
                time.sleep(3600)
            if second in troubles["ends"]:
                sys.exit(0)
            say(Piece(start=second, end=second + 1, text=f"second {second}"))
        say(
            Finished(
                language="en",
                probability=0.9,
                speech_seconds=end - start,
                gap_seconds=0.0,
                again_seconds=0.0,
                dropped=0,
            )
        )


def say(answer: Answer) -> None:
    """Say a line."""
    sys.stdout.write(json.dumps(answer_to_json(answer)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
