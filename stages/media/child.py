"""The decoding child: `python -m stages.media.child`, one request in, answers out, and it is gone.

Whoever starts it has it die with its parent and within its limits before this module is reached.
"""

import os
import sys
from collections.abc import Callable
from json import dumps, loads

from stages.media.messages import (
    Answer,
    Failed,
    Progressed,
    Refused,
    Request,
    answer_to_json,
    request_from_json,
)

_LONGEST_REQUEST = 1 << 16  # characters


def main() -> None:
    """Answer one request; what went wrong is an answer too, so the exit code says nothing."""
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever native code prints must not reach the wire
    request = request_from_json(loads(sys.stdin.readline(_LONGEST_REQUEST)))

    def tell(answer: Answer) -> None:
        wire.write(dumps(answer_to_json(answer)) + "\n")

    tell(answer(request, lambda seconds: tell(Progressed(decoded_seconds=seconds))))


def answer(request: Request, told: Callable[[float], None]) -> Answer:
    """Return the one answer that ends the work."""
    # Loaded only now: what FFmpeg's libraries print when they are loaded is off the wire.
    from stages.media.decode import decode  # noqa: PLC0415 - see above
    from stages.media.source import MediaRefused  # noqa: PLC0415 - see above

    try:
        return decode(request, told)
    except MediaRefused as refused:
        return Refused(code=refused.code, reason=refused.reason)
    except MemoryError:
        return Failed(reason="the memory allowed to a decoding is used up", errno=None)
    except OSError as error:
        return Failed(reason=str(error), errno=error.errno)


if __name__ == "__main__":
    main()
