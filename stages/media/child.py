"""The decoding child: `python -m stages.media.child`, one request in, answers out, and it is gone.

Whoever starts it has it die with its parent and within its limits before this module is reached.
"""

from collections.abc import Callable

from stages.media.messages import (
    Answer,
    Failed,
    Progressed,
    Refused,
    Request,
    answer_to_json,
    request_from_json,
)
from stages.media.wire import heard


def main() -> None:
    """Answer one request; what went wrong is an answer too, so the exit code says nothing."""
    message, tell = heard()
    request = request_from_json(message)
    told = answer(request, lambda seconds: tell(answer_to_json(Progressed(decoded_seconds=seconds))))
    tell(answer_to_json(told))


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
