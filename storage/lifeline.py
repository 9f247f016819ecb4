"""The first lines of every child process: it lives as long as its parent, within its limits, as its user.

Run by its path, before anything else is imported::

    python -I lifeline.py KEY=VALUE... exec PROGRAM ARGUMENT...
    python -I lifeline.py KEY=VALUE... module NAME ARGUMENT...

Keys: `parent` (the pid that must still be our parent), `signal` (sent to us when it dies), `uid` and `gid`,
`memory` and `file` (bytes), `cpu` (seconds). It imports nothing of ours: a child must not pay for what it
does not use.
"""

import ctypes
import os
import resource
import runpy
import sys
from collections.abc import Mapping, Sequence

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_LIMITS = {
    "memory": resource.RLIMIT_AS,
    "cpu": resource.RLIMIT_CPU,
    "file": resource.RLIMIT_FSIZE,
}


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl was refused")


def die_with_parent(parent: int, signal: int) -> None:
    """Have the kernel send us `signal` when our parent dies; leave at once if `parent` is dead already.

    To be called after the last change of user (the kernel forgets it then). It follows the *thread* that
    spawned us, so that must be one that lives as long as its process: the main thread.
    """
    _prctl(_PR_SET_PDEATHSIG, signal)
    if os.getppid() != parent:
        sys.exit(f"the parent process {parent} is gone")


def become(uid: int, gid: int) -> None:
    """Give up being root for good: no group of root's is kept."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def keep_within(limits: Mapping[str, int]) -> None:
    """Set the limits (`memory`, `file` in bytes, `cpu` in seconds) and never leave a core file.

    A lower limit of whoever started us stays as it is: nobody but root may raise it.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, most in limits.items():
        # SIGXCPU, which tells the cause, comes a little before the SIGKILL of the hard limit.
        asked = (most, most + 5 if name == "cpu" else most)
        there = resource.getrlimit(_LIMITS[name])[1]
        if there != resource.RLIM_INFINITY:
            asked = (min(asked[0], there), min(asked[1], there))
        resource.setrlimit(_LIMITS[name], asked)


def be_the_first_to_go() -> None:
    """When the machine runs out of memory, have the kernel end us and not the daemon or its database."""
    try:
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, b"500")
        os.close(score)
    except OSError as error:  # a sandbox may forbid it: then the kernel chooses as it always did
        sys.stderr.write(f"cannot volunteer to be ended first when memory runs out: {error}\n")


def main(words: Sequence[str]) -> None:
    """Set ourselves up as the words say, give up gaining privileges, become the program or the module."""
    mode = next(number for number, word in enumerate(words) if "=" not in word)
    asked = dict(word.split("=", 1) for word in words[:mode])
    os.umask(0o077)
    if "uid" in asked:
        become(int(asked["uid"]), int(asked["gid"]))
    die_with_parent(int(asked["parent"]), int(asked["signal"]))
    keep_within({name: int(asked[name]) for name in _LIMITS if name in asked})
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)

    kind, *rest = words[mode:]
    if kind == "exec":
        os.execv(rest[0], rest)  # noqa: S606 - the program was named in full by our own parent
    be_the_first_to_go()
    # Isolated mode drops the folder our packages are in when they run from a checkout.
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100,PTH120 - pathlib costs 10 ms
    if ours not in sys.path:
        sys.path.append(ours)
    sys.argv = rest
    runpy.run_module(rest[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
