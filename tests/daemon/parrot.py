"""A child for tests: does one asked-for thing per line on stdin, and answers with a line on stdout."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def echo(asked: dict[str, Any]) -> dict[str, Any]:
    """Give the message back."""
    return asked


def tell(_asked: dict[str, Any]) -> dict[str, Any]:
    """Tell about ourselves."""
    return {"pid": os.getpid(), "environ": dict(os.environ), "folder": str(Path.cwd()), "argv": sys.argv[1:]}


def crash(_asked: dict[str, Any]) -> dict[str, Any]:
    """Crash as native code does."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}


def killed(_asked: dict[str, Any]) -> dict[str, Any]:
    """Be killed as by a machine that has run out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def devour(_asked: dict[str, Any]) -> dict[str, Any]:
    """Take ever more memory."""
    return {"taken": len([bytearray(64 << 20) for _ in range(1000)])}


def spin(_asked: dict[str, Any]) -> dict[str, Any]:
    """Take ever more processor time."""
    while True:
        pass


def leave(asked: dict[str, Any]) -> dict[str, Any]:
    """Leave with an exit code and some last words."""
    sys.stderr.write("\n".join(asked["words"]))
    sys.exit(asked["code"])


def chatter(asked: dict[str, Any]) -> dict[str, Any]:
    """Write a great deal to stderr."""
    for number in range(asked["lines"]):
        sys.stderr.write(f"line {number}\n")
    return {}


def long(asked: dict[str, Any]) -> dict[str, Any]:
    """Answer at length."""
    return {"x": "x" * asked["length"]}


def garble(asked: dict[str, Any]) -> dict[str, Any]:
    """Answer with something that is no message."""
    sys.stdout.write(asked["line"] + "\n")
    sys.stdout.flush()
    time.sleep(600)
    return {}


def close(_asked: dict[str, Any]) -> dict[str, Any]:
    """Close our side and live on."""
    os.close(1)
    time.sleep(600)
    return {}


def hang(_asked: dict[str, Any]) -> dict[str, Any]:
    """Be busy for ever, with a helper of our own."""
    helper = subprocess.Popen(["/bin/sleep", "600"])
    sys.stdout.write(json.dumps({"helper": helper.pid}) + "\n")
    sys.stdout.flush()
    time.sleep(600)
    return {}


def late(asked: dict[str, Any]) -> dict[str, Any]:
    """Answer twice, the second time later than expected."""
    sys.stdout.write(json.dumps(asked) + "\n")
    sys.stdout.flush()
    time.sleep(0.2)
    return asked


TRICKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    trick.__name__: trick
    for trick in (echo, tell, crash, killed, devour, spin, leave, chatter, long, garble, close, hang, late)
}

if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        sys.stdout.write(json.dumps(TRICKS[message["do"]](message)) + "\n")
        sys.stdout.flush()
