"""The child that makes listening copies: `python -m stages.media.listening_child`, for one request.

It gives way to everybody: nothing waits for what it makes.
"""

import os
from collections.abc import Callable

from stages.media.listening_messages import (
    ListeningAnswer,
    ListeningRequest,
    answer_to_json,
    request_from_json,
)
from stages.media.messages import Failed, Progressed
from stages.media.wire import heard
from storage.errors import StageFailed

_LAST_IN_LINE = 19  # of the kernel's niceness


def main() -> None:
    """Answer one request; what went wrong is an answer too, so the exit code says nothing."""
    message, tell = heard()
    os.nice(_LAST_IN_LINE)
    request = request_from_json(message)
    told = answer(request, lambda seconds: tell(answer_to_json(Progressed(decoded_seconds=seconds))))
    tell(answer_to_json(told))


def answer(request: ListeningRequest, told: Callable[[float], None]) -> ListeningAnswer:
    """Return the one answer that ends the work."""
    # Loaded only now: what FFmpeg's libraries print when they are loaded is off the wire.
    from stages.media.listening_copy import make  # noqa: PLC0415 - see above

    try:
        return make(request, told)
    except MemoryError:
        return Failed(reason="the memory allowed to a listening copy is used up", errno=None)
    except OSError as error:
        return Failed(reason=str(error), errno=error.errno)
    except StageFailed as error:
        return Failed(reason=str(error), errno=None)


if __name__ == "__main__":
    main()
