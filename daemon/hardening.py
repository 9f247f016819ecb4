"""What the daemon forbids itself, beyond what its service manager does."""

import ctypes

_PR_SET_MDWE = 65
_REFUSE_EXEC_GAIN, _NO_INHERIT = 1, 2


def refuse_new_code() -> bool:
    """Have the kernel refuse this process memory that is writable and executable, or becomes executable.

    Only for this process: the recogniser compiles its kernels while it runs, in a child. Returns False where
    the kernel cannot do that (before Linux 6.6); there it stays as it was.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    refusals = ctypes.c_ulong(_REFUSE_EXEC_GAIN | _NO_INHERIT)
    nothing = ctypes.c_ulong(0)
    return bool(libc.prctl(_PR_SET_MDWE, refusals, nothing, nothing, nothing) == 0)
