"""Every request has a name, and one length."""

import re

import pytest
import trio
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from daemon.conversation import SEE_OFF_SECONDS
from daemon.early_answer import LINGER_SECONDS
from tests.daemon.intake.conftest import Doors


async def test_a_request_s_name_is_in_its_answer_and_in_the_log(doors: Doors) -> None:
    """The same in both, another one for each; what a client calls its request is nothing to us."""
    with capture_logs(processors=[merge_contextvars]) as said:
        async with doors.client(
            headers={"Request-Id": "mine", "Authorization": f"Bearer {doors.secret}"}
        ) as client:
            names = [(await client.post("/v1/records", content=b"x")).headers["request-id"] for _ in range(2)]
            wrong = await client.get("/nothing")
    assert [entry["request"] for entry in said if entry["event"] == "submission.accepted"] == names
    assert len({*names, wrong.headers["request-id"]}) == 3
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in names)


@pytest.mark.parametrize("path", ["/v1/records", "/v1/uploads", "/healthz"])
async def test_a_request_with_two_lengths_is_refused_and_its_connection_closed(
    doors: Doors, path: str
) -> None:
    """What comes behind it on the connection might be another's, so nothing that does is looked at."""
    head = doors.head("Content-Length: 5", "Transfer-Encoding: chunked", path=path)
    behind = b"GET /healthz HTTP/1.1\r\nHost: rubezh\r\n\r\n"
    answer = await doors.speak(head, then=b"5\r\nhello\r\n0\r\n\r\n" + behind)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer.lower()
    assert b"ambiguous_length" in answer
    assert await doors.left() == (0, [])


@pytest.mark.parametrize("body", [b"", b"hello", b"5\r\nhel"])
async def test_nor_is_a_body_waited_for_that_has_two_lengths(doors: Doors, body: bytes) -> None:
    """Whichever of the two it follows, and whether it comes at all."""
    began = trio.current_time()
    answer = await doors.speak(doors.head("Content-Length: 5", "Transfer-Encoding: chunked") + body)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in answer.lower()
    assert trio.current_time() - began < LINGER_SECONDS + SEE_OFF_SECONDS + 2
