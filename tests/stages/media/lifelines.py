"""Media children, started by their lifeline as the daemon does."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from storage import lifeline


def start_child(
    module: str, request: Mapping[str, Any], memory: int, **limits: int
) -> "subprocess.Popen[str]":
    """Start a child by its lifeline, and give it its request; `memory` is in bytes."""
    words = [f"parent={os.getpid()}", f"signal={int(signal.SIGKILL)}", f"memory={memory}"]
    words += [f"{name}={most}" for name, most in limits.items()]
    child = subprocess.Popen(
        [sys.executable, "-I", "-B", lifeline.__file__, *words, "module", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(request) + "\n")
    child.stdin.flush()
    return child
