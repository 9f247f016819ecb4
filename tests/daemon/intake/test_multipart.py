"""A form that cannot be read is its sender's concern, and no entry of the log."""

import logging

import pytest

from daemon.intake.multipart import Form, boundary_of
from daemon.intake.problems import Problem


def take(body: bytes) -> None:
    """Take a form whole."""
    form = Form(b"b")
    form.feed(body)
    form.finish()


@pytest.mark.parametrize(
    "body",
    [b"nonsense", b"--b\r\nContent-Disposition\x00: x\r\n\r\n", b"--b\r\nA B: c\r\n\r\n", b"--bx", b"--b\rX"],
)
def test_a_malformed_form_is_told_to_its_sender_alone(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever has a token could fill the owner's log with it otherwise."""
    with caplog.at_level(logging.WARNING):
        with pytest.raises(Problem, match="cannot be read"):
            take(body)
        boundary_of("multipart/form-data; boundary=\x00")
    assert caplog.records == []
