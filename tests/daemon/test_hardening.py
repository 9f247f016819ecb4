"""What the daemon forbids itself."""

import subprocess
import sys

import pytest

from tests.processes import CHECKOUT

TRIES = """
import mmap, subprocess, sys
from daemon.hardening import refuse_new_code
new_code = "import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)"
exec(new_code)
if not refuse_new_code():
    sys.exit(3)
subprocess.run([sys.executable, "-c", new_code], check=True)
try:
    exec(new_code)
except PermissionError:
    sys.exit(0)
sys.exit(1)
"""


def test_new_code_is_refused_to_us_and_not_to_our_children() -> None:
    """The recogniser compiles its kernels in a child; the daemon has no such need."""
    done = subprocess.run([sys.executable, "-c", TRIES], cwd=CHECKOUT, check=False, timeout=60)
    if done.returncode == 3:
        pytest.skip("needs Linux 6.6")
    assert done.returncode == 0
