"""Clients as people use them, unchanged, against the real service over TCP."""

import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pytest
from attrs import frozen
from httpx2 import ReadTimeout

from tests.acceptance.conftest import SAMPLES, put_model
from tests.acceptance.rig import Daemon, Rig, eventually

SAMPLE = SAMPLES / "milestone.opus"


@frozen
class Served:
    """A running service, where it is, and a token of its."""

    rig: Rig
    daemon: Daemon
    url: str
    token: str

    def client(self, **changes: Any) -> openai.OpenAI:
        """Return OpenAI's own client, told nothing but where to go and as whom."""
        given: dict[str, Any] = {"base_url": f"{self.url}/v1", "api_key": self.token}
        return openai.OpenAI(**{**given, **changes})


def a_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@pytest.fixture
def served(make_rig: Callable[..., Rig], dsn: str) -> Served:
    """The service with its model, on TCP."""
    listen = f"127.0.0.1:{a_port()}"
    rig = make_rig(dsn, intake={"listen": listen})
    put_model(rig)
    daemon = rig.start()
    return Served(rig, daemon, f"http://{listen}", rig.account())


def test_s_i20_openai_s_own_client_works_unchanged(served: Served, reference: str) -> None:
    """Every form of the answer; the same recording again is the same record, answered at once."""
    client = served.client()
    assert [model.id for model in client.models.list()] == ["whisper-1", "base"]
    assert client.models.retrieve("base").id == "base"

    def transcribed(**asked: Any) -> Any:
        return client.audio.transcriptions.create(model="whisper-1", file=SAMPLE, language="en", **asked)

    first = client.audio.transcriptions.with_raw_response.create(
        model="whisper-1", file=SAMPLE, language="en"
    )
    record_id = first.headers["rubezh-record"]
    assert first.parse().text == reference
    assert transcribed(response_format="text").strip() == reference
    assert transcribed(response_format="srt").startswith("1\n00:00:00,")
    assert transcribed(response_format="vtt").startswith("WEBVTT\n\n00:00:00.")
    whole = transcribed(response_format="verbose_json", timestamp_granularities=["word", "segment"])
    assert (whole.text, whole.language) == (reference, "en")
    assert whole.duration == pytest.approx(17.4, abs=1)
    assert " ".join(segment.text for segment in whole.segments) == reference
    assert all(segment.start <= segment.end <= whole.duration for segment in whole.segments)
    assert all(0 < segment.compression_ratio < 2.4 for segment in whole.segments)
    assert [row["id"] for row in served.rig.ask("SELECT id::text FROM records")] == [record_id]
    with served.daemon.client(served.token) as asking:
        assert asking.get(f"/v1/records/{record_id}").json()["text"] == reference
        known = asking.get(f"/v1/records/{record_id}/transcript").json()["segments"]
    words = [word["text"].strip() for segment in known for word in segment["words"]]
    assert [word.word for word in whole.words] == words

    asked: dict[str, Any] = {"file": SAMPLE, "language": "en", "prompt": "milestone", "stream": True}
    streamed: list[Any] = list(client.audio.transcriptions.create(model="base", **asked))
    *pieces, done = streamed
    assert {piece.type for piece in pieces} == {"transcript.text.delta"}
    assert "".join(piece.delta for piece in pieces) == done.text
    assert done.type == "transcript.text.done"
    assert served.rig.ask("SELECT count(*) FROM records")[0]["count"] == 2

    # The client's own method is deprecated, and the route is not.
    translated: Any = client.post(
        "/audio/translations",
        cast_to=object,
        body={"model": "whisper-1"},
        files={"file": SAMPLE},
        options={"headers": {"Content-Type": "multipart/form-data"}},
    )
    assert "milestone" in translated["text"]
    [(wanted,)] = [
        tuple(row.values())
        for row in served.rig.ask("SELECT translate FROM records ORDER BY created_at DESC LIMIT 1")
    ]
    assert wanted is True


class Refusal(NamedTuple):
    """A call that cannot be served, and what the client makes of the answer."""

    call: Callable[[Any], object]
    error: type[openai.APIStatusError]
    code: str


REFUSALS = {
    "a wrong token": Refusal(
        lambda client: client.with_options(api_key="rbz_wrong").models.list(),
        openai.AuthenticationError,
        "unauthorized",
    ),
    "an unknown model": Refusal(
        lambda client: client.audio.transcriptions.create(model="gpt-9", file=SAMPLE),
        openai.NotFoundError,
        "model_not_found",
    ),
    "what is no recording": Refusal(
        lambda client: client.audio.transcriptions.create(model="whisper-1", file=("x.mp3", b"<html>")),
        openai.BadRequestError,
        "not_media",
    ),
    "words without their form": Refusal(
        lambda client: client.audio.transcriptions.create(
            model="whisper-1", file=("x.mp3", b"x"), timestamp_granularities=["word"]
        ),
        openai.BadRequestError,
        "invalid_value",
    ),
    "an empty file": Refusal(
        lambda client: client.audio.transcriptions.create(model="whisper-1", file=("x.mp3", b"")),
        openai.BadRequestError,
        "empty_body",
    ),
    "a language that is none": Refusal(
        lambda client: client.audio.transcriptions.create(
            model="whisper-1", file=("x.mp3", b"x"), language="Klingon!"
        ),
        openai.UnprocessableEntityError,
        "invalid_options",
    ),
}


def test_what_cannot_be_served_is_told_as_openai_s_clients_read_it(served: Served) -> None:
    """Each as the client's own kind of error, with our stable code and a sentence."""
    client = served.client(max_retries=0)
    for case, refusal in REFUSALS.items():
        with pytest.raises(refusal.error) as told:
            refusal.call(client)
        assert told.value.code == refusal.code, case
        body: Any = told.value.body
        assert body["message"].endswith("."), case
    left = served.rig.ask("SELECT stop_code FROM records")
    assert [row["stop_code"] for row in left] == ["not_media"]


def test_s_i21_a_client_that_has_gone_loses_the_answer_and_not_the_record(
    make_rig: Callable[..., Rig], dsn: str
) -> None:
    """Its own time-out, then ours: the record is there each time, and the same one."""
    listen = f"127.0.0.1:{a_port()}"
    rig = make_rig(dsn, intake={"listen": listen, "answer_seconds": 0.5})
    daemon = rig.start(*rig.odd("endless"))
    client = openai.OpenAI(base_url=f"http://{listen}/v1", api_key=rig.account(), max_retries=0)
    with pytest.raises((openai.APITimeoutError, ReadTimeout)):
        client.with_options(timeout=0.3).audio.transcriptions.create(model="whisper-1", file=SAMPLE)
    with pytest.raises(openai.InternalServerError) as told:
        client.audio.transcriptions.create(model="whisper-1", file=SAMPLE)
    [record] = rig.ask("SELECT id::text FROM records")
    assert told.value.status_code == 504
    assert told.value.code == "still_running"
    assert told.value.response.headers["rubezh-record"] == record["id"]
    assert daemon.entries("request.failed") == []


def curl(*words: str | Path, code: int = 0) -> "subprocess.CompletedProcess[bytes]":
    """Run curl as one would; it must end with that exit code."""
    done = subprocess.run(
        ["curl", "--silent", "--show-error", *map(str, words)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def test_s_i22_curl_does_all_of_it(served: Served, reference: str, tmp_path: Path) -> None:
    """From handing in to listening, as the manual has it."""
    authorized = ("-H", f"Authorization: Bearer {served.token}")
    records = f"{served.url}/v1/records"
    sent = curl(*authorized, "--data-binary", f"@{SAMPLE}", f"{records}?filename=talk.opus&language=en")
    record = f"{records}/{json.loads(sent.stdout)['id']}"

    def is_done() -> bool:
        shown = json.loads(curl(*authorized, "-H", "Prefer: wait=20", record).stdout)
        return bool(shown["milestone"] == "done")

    eventually(is_done, "the record is done")
    assert curl(*authorized, f"{record}/transcript.txt").stdout.decode().split() == reference.split()
    etag = tmp_path / "etag"
    curl(*authorized, "--etag-save", etag, record)
    again = curl(*authorized, "--etag-compare", etag, "-w", "%{http_code}", record)
    assert again.stdout == b"304"
    curl(*authorized, "-o", tmp_path / "half.wav", "-r", "0-99999", f"{record}/audio")
    curl(*authorized, "-o", tmp_path / "half.wav", "-C", "-", f"{record}/audio")
    curl(*authorized, "-o", tmp_path / "whole.wav", f"{record}/audio")
    assert (tmp_path / "half.wav").read_bytes() == (tmp_path / "whole.wav").read_bytes()
    edit = ("-X", "PATCH", "--json", '{"title": "A milestone", "edition": 1}')
    assert json.loads(curl(*authorized, *edit, record).stdout)["edition"] == 2
    found = json.loads(curl(*authorized, "-G", "--data-urlencode", "q=milestones", records).stdout)
    assert [each["title"] for each in found["records"]] == ["A milestone"]
    live = ("-N", "-H", "Accept: text/event-stream", "--max-time", "2")
    stream = curl(*authorized, *live, f"{record}/events", code=28)  # it goes on until one has enough
    assert b"event: reached" in stream.stdout
