"""A transcription as server-sent events: each piece of the text as soon as it is there, then the whole."""

import json
from typing import Any

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from daemon.intake.compatible.errors import openai_error
from daemon.intake.compatible.forms import usage
from daemon.intake.compatible.waiting import ended, not_yet
from daemon.intake.operations import Asked
from daemon.intake.polling import end_with_sender
from daemon.intake.problems import Problem
from storage.corrections import read_segments
from storage.errors import DatabaseUnavailable
from storage.record import Milestone

LOOK_SECONDS = 15.0  # a sign of life, where nothing is heard for so long


class TranscriptStream(Response):
    """The answer to a call with `stream`, until `until` on Trio's clock."""

    def __init__(self, asked: Asked, record: Any, headers: dict[str, str], until: float) -> None:  # noqa: ANN401 - a record's id
        super().__init__(media_type="text/event-stream", headers={**headers, "Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._asked = asked
        self._record_id = record
        self._until = until
        self._told = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what there is, and go on until all is sent."""
        del scope, receive
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        with trio.CancelScope() as sending:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(end_with_sender, self._asked.request, sending)
                try:
                    await self._go_on(send)
                except Problem as problem:
                    await _say(send, openai_error(problem.status.value, problem.code, problem.detail))
                except DatabaseUnavailable:
                    detail = (
                        "The service cannot reach its database just now; send the same again in a moment."
                    )
                    await _say(send, openai_error(503, "database_unavailable", detail))
                nursery.cancel_scope.cancel(reason="all is said")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _go_on(self, send: Send) -> None:
        polls, account = self._asked.doors.polls, self._asked.account
        with polls.changes.watching(self._record_id) as watch:
            while True:
                change = trio.Event() if watch is None else watch.next_change
                readiness = await polls.look(self._record_id, account)
                over = ended(readiness)
                if readiness.milestone in (Milestone.TRANSCRIBE, Milestone.DONE):
                    await self._say_new(send)
                if over:
                    done = {"type": "transcript.text.done", "text": readiness.text, "usage": usage(readiness)}
                    await _say(send, done)
                    return
                left = self._until - trio.current_time()
                if left <= 0 or self._asked.doors.stopping():
                    raise not_yet(readiness, stopping=self._asked.doors.stopping())
                with trio.move_on_after(min(left, LOOK_SECONDS, polls.changes.longest_trust)) as quiet:
                    await change.wait()
                if quiet.cancelled_caught:
                    await send({"type": "http.response.body", "body": b": still here\n\n", "more_body": True})

    async def _say_new(self, send: Send) -> None:
        """Say the segments that were not said yet; together they are the whole text."""
        segments = await read_segments(self._asked.doors.database, self._record_id, self._asked.account.id)
        for segment in segments[self._told :]:
            if segment.text:
                space = " " if any(each.text for each in segments[: self._told]) else ""
                await _say(send, {"type": "transcript.text.delta", "delta": space + segment.text})
            self._told += 1


async def _say(send: Send, event: dict[str, Any]) -> None:
    data = f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
    await send({"type": "http.response.body", "body": data.encode("utf-8", "replace"), "more_body": True})
