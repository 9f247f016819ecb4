"""Wrong tokens are counted by where they come from."""

import pytest
from structlog.testing import capture_logs
from trio.testing import MockClock

from daemon.intake.wrong_tokens import WrongTokens


def tried(tokens: WrongTokens, source: str | None, times: int) -> float:
    """Bring so many wrong tokens; return how long the next one has to wait."""
    for number in range(times):
        assert tokens.wait_seconds(source, bytes([number])) == 0
        tokens.wrong(source, bytes([number]))
    return tokens.wait_seconds(source, b"next")


async def test_so_many_a_minute(mock_clock: MockClock) -> None:
    """Then one waits for its share; a minute later all is forgotten."""
    tokens = WrongTokens(30)
    with capture_logs() as said:
        assert tried(tokens, "192.0.2.1", 30) == pytest.approx(2.0)
    assert [(entry["event"], entry["source"]) for entry in said] == [("tokens.refused", "192.0.2.1")]
    mock_clock.jump(2.001)
    assert tried(tokens, "192.0.2.1", 1) == pytest.approx(2.0, abs=0.01)
    mock_clock.jump(60)
    assert tried(tokens, "192.0.2.1", 30) > 0


async def test_a_right_token_is_not_held_up_by_its_neighbour(mock_clock: MockClock) -> None:
    """What opened the doors opens them from the same address too, until it does not any more."""
    tokens = WrongTokens(2)
    tokens.right(b"anna's")
    assert tried(tokens, "192.0.2.1", 2) > 0
    assert tokens.wait_seconds("192.0.2.1", b"anna's") == 0
    tokens.wrong("192.0.2.1", b"anna's")
    assert tokens.wait_seconds("192.0.2.1", b"anna's") > 0


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("somewhere", "somewhere", True),
    ],
)
async def test_what_one_sender_has_counts_together(
    mock_clock: MockClock, one: str, other: str, *, together: bool
) -> None:
    """An address of IPv4, a net of IPv6."""
    tokens = WrongTokens(2)
    assert tried(tokens, one, 2) > 0
    assert (tokens.wait_seconds(other, b"x") > 0) == together


async def test_the_service_s_own_socket_is_not_counted(mock_clock: MockClock) -> None:
    """Who is behind it stands for many."""
    assert tried(WrongTokens(2), None, 100) == 0


async def test_the_memory_of_sources_and_tokens_has_an_end(mock_clock: MockClock) -> None:
    """The oldest are forgotten."""
    tokens = WrongTokens(1)
    for number in range(5000):
        tokens.wrong(f"10.0.{number // 250}.{number % 250}", b"x")
        tokens.right(b"%d" % number)
    assert tokens.wait_seconds("10.0.0.0", b"x") == 0
    assert tokens.wait_seconds("10.0.19.249", b"x") > 0
    assert tokens.wait_seconds("10.0.19.249", b"0") > 0
    assert tokens.wait_seconds("10.0.19.249", b"4999") == 0
