"""The three descriptors every program is given: whoever starts us may have closed some of them.

Then the next file or socket that is opened would be taken for stdout, and everything said would go into it.
"""

import io
import os
import sys
from typing import TextIO


def complete_descriptors() -> None:
    """Have all three be open: nothing comes from a missing stdin, nothing that is said on stderr is kept.

    What is written to a missing stdout is an error: a result must not be lost in silence.
    """
    for number, way in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:  # closed; the lowest free number is the one that is given
            os.open(os.devnull, way)
    # Where it was closed when the interpreter began there is no stream, whatever the types say.
    if sys.stdout is None:
        sys.stdout = _stream(1)
    if sys.stderr is None:
        sys.stderr = _stream(2)


def _stream(number: int) -> TextIO:
    """Return a stream that keeps nothing back: what cannot be written must not be tried again at the end."""
    raw = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
