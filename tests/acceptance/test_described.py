"""The service against its own description: thousands of requests made from it, by schemathesis."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig
from tests.acceptance.test_clients import a_port

SEED = "20261130"
# The tool cannot write bodies of tus' own kind; real clients of it stand for these.
NOT_ASKED = ("beginUpload", "continueUpload", "overrideUploadMethod")
EXAMPLES = 150
# How what is wrong may be refused.
REFUSALS = [400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 428, 429]
# What each answer is held to. Not asked for: that whatever the schema allows is accepted (an id that nobody
# has, a key in use and a record that is done are refused for what they are, and not for their form).
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)


def examined(
    url: str, token: str, folder: Path, phases: str, record_id: str | None
) -> "subprocess.CompletedProcess[str]":
    """Run schemathesis; `record_id` stands wherever a record is asked for, else ids are made up."""
    lines = ["[checks.negative_data_rejection]", f"expected-statuses = {json.dumps(REFUSALS)}"]
    lines += [] if record_id is None else ["[parameters]", f'"path.id" = {json.dumps(record_id)}']
    config = folder / "schemathesis.toml"
    config.write_text("\n".join(lines) + "\n")
    return subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
            *("run", f"{url}/openapi.json", "--header", f"Authorization: Bearer {token}"),
            *("--phases", phases, "--checks", ",".join(CHECKS)),
            *(word for name in NOT_ASKED for word in ("--exclude-operation-id", name)),
            *("--max-examples", str(EXAMPLES), "--seed", SEED, "--generation-database", "none"),
            *("--request-timeout", "30", "--continue-on-failure", "--warnings", "off", "--no-color"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=7200,
        check=False,
    )


def examine(make_rig: Callable[..., Rig], dsn: str, folder: Path, phases: str, *, with_unknown: bool) -> None:
    """Hold a real service to its description, with a record that is there and with ones that are not."""
    listen = f"127.0.0.1:{a_port()}"
    rig = make_rig(dsn, intake={"listen": listen, "answer_seconds": 0.1, "wrong_tokens": 100_000})
    daemon = rig.start(*rig.odd("endless"))
    token = rig.account()
    record_id = str(daemon.submit(token, b"RIFF of a kind"))
    for asked in (record_id, None) if with_unknown else (record_id,):
        run = examined(f"http://{listen}", token, folder, phases, asked)
        assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-3000:]
    assert daemon.entries("request.failed") == []
    assert daemon.entries("connection.failed") == []
    assert daemon.process.poll() is None


def test_s_i23_the_service_is_as_it_describes_itself(
    make_rig: Callable[..., Rig], dsn: str, tmp_path: Path
) -> None:
    """No 500, and no answer that the description does not hold."""
    examine(make_rig, dsn, tmp_path, "coverage", with_unknown=False)


@pytest.mark.deep
def test_the_service_is_as_it_describes_itself_at_length(
    make_rig: Callable[..., Rig], dsn: str, tmp_path: Path
) -> None:
    """The same with many more requests."""
    examine(make_rig, dsn, tmp_path, "examples,coverage,fuzzing", with_unknown=True)
