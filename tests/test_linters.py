"""The linters reject what the project promises never to do. Each rule is shown on code that breaks it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

CLOSED_WELL = '''"""A recogniser is closed."""

import structlog

from stages.recogniser import Recogniser, RecogniserFailed

log = structlog.get_logger()


def finish(recogniser: Recogniser) -> None:
    """Close it, and tell what went wrong."""
    try:
        recogniser.close()
    except RecogniserFailed:
        log.warning("recogniser.close_failed", exc_info=True)
'''

HANDLER = """    try:
        recogniser.close()
    except RecogniserFailed:
        log.warning("recogniser.close_failed", exc_info=True)
"""

SWALLOWED = {
    "bare": ("    try:\n        recogniser.close()\n    except:\n        pass\n", "S110"),
    "any": ("    try:\n        recogniser.close()\n    except Exception:\n        pass\n", "S110"),
    "named": ("    try:\n        recogniser.close()\n    except RecogniserFailed:\n        pass\n", "S110"),
    "suppressed": ("    with contextlib.suppress(RecogniserFailed):\n        recogniser.close()\n", "TID251"),
    "looped": (
        """\
    for each in recogniser.children:
        try:
            each.close()
        except RecogniserFailed:
            continue
""",
        "S112",
    ),
    "lost": ("    try:\n        recogniser.close()\n    finally:\n        return\n", "B012"),
    "all": (
        """\
    try:
        recogniser.close()
    except BaseException:
        log.debug("recogniser.closed")
""",
        "BLE001",
    ),
}

WORKING = """\
import trio


async def work() -> None:
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        {}
"""


def found_by_ruff(code: str) -> set[str]:
    """The rules that ruff, with the project's own settings, finds broken in this code of the daemon's."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--output-format=json",
        "--stdin-filename=daemon/it.py",
    ]
    done = subprocess.run(
        [*command, "-"], input=code, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    return {each["code"] for each in json.loads(done.stdout)}


def found_by_flake8_async(code: str, folder: Path) -> str:
    """What flake8-async says of this code."""
    module = folder / "it.py"
    module.write_text(code)
    command = [
        sys.executable,
        "-c",
        "import flake8_async; raise SystemExit(flake8_async.main())",
        str(module),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


def test_code_that_tells_its_error_is_accepted() -> None:
    """The code that the mutants below are made from breaks no rule."""
    assert found_by_ruff(CLOSED_WELL) == set()


@pytest.mark.parametrize("mutant", SWALLOWED)
def test_s_p13_the_linters_reject_a_swallowed_error(mutant: str) -> None:
    """However an error around a close is thrown away, a rule that is switched on rejects it."""
    body, rule = SWALLOWED[mutant]
    code = CLOSED_WELL.replace(HANDLER, body).replace(
        "import structlog", "import contextlib\n\nimport structlog"
    )
    assert body in code
    assert rule in found_by_ruff(code)


def test_a_cancellation_may_not_be_swallowed(tmp_path: Path) -> None:
    """To catch Trio's Cancelled and not let it go on is rejected."""
    assert "ASYNC103" in found_by_flake8_async(WORKING.format("return"), tmp_path)
    assert "ASYNC103" not in found_by_flake8_async(WORKING.format("raise"), tmp_path)


def test_trio_asyncio_is_imported_before_psycopg() -> None:
    """What psycopg takes of asyncio at its import, trio-asyncio has replaced by then."""
    code = '"""Two imports."""\n\n{}\n\n__all__ = ["psycopg", "trio_asyncio"]\n'
    assert found_by_ruff(code.format("import trio_asyncio\n\nimport psycopg")) == set()
    assert "I001" in found_by_ruff(code.format("import psycopg\nimport trio_asyncio"))
