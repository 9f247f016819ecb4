"""Recordings handed in by the clients that people have, to the real service, over TCP and its socket."""

import hashlib
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from attrs import define

from tests.acceptance.rig import Daemon, Rig, eventually
from tests.processes import CHECKOUT

JAVASCRIPT = Path(__file__).parent / "tus-js"
SIZE = 16 * 2**20


@define
class Served:
    """A running service whose recordings stay where they were handed in."""

    rig: Rig
    daemon: Daemon
    listen: str
    token: str

    def start_again(self) -> None:
        """Start it anew, at the same address."""
        self.daemon = self.rig.start(*self.rig.odd("endless"))

    def curl(self, *words: str | Path, path: str = "/v1/records") -> tuple[int, dict[str, str], str]:
        """Run curl; return the status, the headers and the body of the answer."""
        command = ["curl", "-sS", "-i", "-H", f"Authorization: Bearer {self.token}", *map(str, words)]
        ran = subprocess.run(
            [*command, f"http://{self.listen}{path}"], capture_output=True, timeout=60, check=True
        )
        *_, head, body = re.split(
            r"(?<=\r\n)\r\n|^\r\n", ran.stdout.decode(), maxsplit=ran.stdout.count(b"HTTP/1.1")
        )
        lines = head.splitlines()
        headers = {
            name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines[1:])
        }
        return int(lines[0].split()[1]), headers, body

    def check(self, record_id: str, content: bytes) -> dict[str, object]:
        """Have the record and its bytes be there; return its row."""
        row = self.rig.record(UUID(record_id))
        stored = (self.rig.state / "store" / row["source_path"]).read_bytes()
        assert hashlib.sha256(stored).digest() == hashlib.sha256(content).digest() == row["source_sha256"]
        return row


@pytest.fixture
def served(make_rig: Callable[..., Rig], dsn: str) -> Served:
    """The service on TCP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    rig = make_rig(dsn, intake={"listen": listen, "wrong_tokens": 5})
    return Served(rig, rig.start(*rig.odd("endless")), listen, rig.account())


@pytest.fixture
def recording(folder: Path) -> Path:
    """A file of random bytes."""
    path = folder / "talk.wav"
    path.write_bytes(os.urandom(SIZE))
    return path


def test_curl_hands_in_plain_bodies_and_forms(
    served: Served, recording: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """With a length, in chunks, as a form, under a key, through the socket; nothing lies about in between."""
    (folder / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
    served.daemon.stop()
    served.start_again()
    content = recording.read_bytes()
    key = ("-H", 'Idempotency-Key: "one"')
    plain = ("-X", "POST", "-T", recording)
    answers = [
        served.curl(*plain),
        served.curl("--data-binary", f"@{recording}", path="/v1/records?title=Plan&topics=a&topics=b"),
        served.curl("-H", "Transfer-Encoding: chunked", *plain),
        served.curl("-F", f"file=@{recording}", "-F", "title=Plan", "-F", "topics=a", "-F", "topics=b"),
        served.curl(*key, *plain),
        served.curl("--unix-socket", served.rig.state / "rubezh.sock", *plain),
    ]
    assert [status for status, _, _ in answers] == [201] * 6
    ids = [json.loads(body)["id"] for _, _, body in answers]
    assert len(set(ids)) == 6
    rows = [served.check(record_id, content) for record_id in ids]
    assert (
        (rows[1]["title"], rows[1]["topics"]) == (rows[3]["title"], rows[3]["topics"]) == ("Plan", ["a", "b"])
    )
    assert rows[3]["filename"] == "talk.wav"
    status, _, body = served.curl(*key, *plain)
    assert (status, json.loads(body)) == (201, json.loads(answers[4][2]))
    assert served.curl(*key, "--data-binary", "other")[0] == 422
    assert list((folder / "tmp").iterdir()) == []
    served.daemon.stop()


def test_curl_resumes_an_upload(served: Served, recording: Path) -> None:
    """Begun, gone on with from where it is after the service was killed, and finished by hand."""
    content = recording.read_bytes()
    tus = ("-H", "Tus-Resumable: 1.0.0")
    part = (*tus, "-H", "Content-Type: application/offset+octet-stream", "-X", "PATCH")
    status, begun, _ = served.curl(
        "-X",
        "POST",
        *tus,
        "-H",
        f"Upload-Length: {SIZE}",
        "-H",
        "Upload-Metadata: title UGxhbg==",
        path="/v1/uploads",
    )
    assert status == 201
    at = begun["location"]
    (recording.parent / "part").write_bytes(content[:5_000_000])
    status, headers, _ = served.curl(
        *part, "-H", "Upload-Offset: 0", "--data-binary", f"@{recording.parent / 'part'}", path=at
    )
    assert (status, headers["upload-offset"]) == (204, "5000000")
    served.daemon.kill()
    served.start_again()
    status, told, _ = served.curl("-I", *tus, path=at)
    assert (status, told["upload-offset"], told["upload-length"]) == (200, "5000000", str(SIZE))
    (recording.parent / "part").write_bytes(content[5_000_000:])
    status, headers, _ = served.curl(
        *part, "-H", "Upload-Offset: 5000000", "--data-binary", f"@{recording.parent / 'part'}", path=at
    )
    assert status == 204
    assert served.check(headers["rubezh-record"], content)["title"] == "Plan"
    served.daemon.stop()


def resumed_after_both_were_killed(served: Served, recording: Path, command: list[str]) -> str:
    """Run a client, kill it and the service half-way, start both again; return what the client said then."""
    said = recording.parent / "said"
    with said.open("w") as out:
        client = subprocess.Popen(command, cwd=CHECKOUT, stdout=out, stderr=out, start_new_session=True)
    eventually(lambda: said.read_text().count("sent ") >= 8, "some of it has been sent")
    client.kill()
    served.daemon.kill()
    client.wait(10)
    assert "record" not in said.read_text()
    assert served.rig.ask("SELECT 1 FROM records") == []
    [row] = served.rig.ask("SELECT received FROM uploads")
    assert 0 < row["received"] < SIZE
    served.start_again()
    ran = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr[-2000:]
    return ran.stdout


def test_s_i11_tuspy_goes_on_after_both_sides_were_killed(served: Served, recording: Path) -> None:
    """The client finds its upload again, asks how far it is, and sends the rest, all with checksums."""
    command = [
        sys.executable,
        *("-m", "tests.acceptance.tuspy_upload", f"http://{served.listen}/v1/uploads", served.token),
        *(str(recording), str(recording.parent / "storage.json")),
    ]
    said = resumed_after_both_were_killed(served, recording, command)
    assert re.search(r"^resuming http\S+ at [1-9]\d+$", said, re.MULTILINE)
    [record_id] = re.findall(r"^record (\S+)$", said, re.MULTILINE)
    row = served.check(record_id, recording.read_bytes())
    assert (row["title"], row["filename"]) == ("From Python", "talk.wav")
    served.daemon.stop()


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("npm") is None, reason="the machine has no Node.js")
def test_tus_js_client_goes_on_after_both_sides_were_killed(served: Served, recording: Path) -> None:
    """The same with the client that browsers have, in Node.js."""
    place = recording.parent / "tus-js"
    shutil.copytree(JAVASCRIPT, place)
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(install, cwd=place, check=True, capture_output=True, timeout=300)
    command = [
        *("node", str(place / "upload.js"), f"http://{served.listen}/v1/uploads", served.token),
        *(str(recording), str(recording.parent / "storage.json")),
    ]
    said = resumed_after_both_were_killed(served, recording, command)
    assert "resuming http" in said
    [record_id] = set(re.findall(r"^record (\S+)$", said, re.MULTILINE))
    row = served.check(record_id, recording.read_bytes())
    assert (row["title"], row["filename"]) == ("From JavaScript", "talk.wav")
    served.daemon.stop()


def test_a_stop_keeps_what_came_of_an_upload(served: Served, recording: Path) -> None:
    """Told to stop in the middle of a part, the service counts what came and ends in its time."""
    tus = ("-H", "Tus-Resumable: 1.0.0")
    begun = served.curl("-X", "POST", *tus, "-H", f"Upload-Length: {SIZE}", path="/v1/uploads")
    at = begun[1]["location"]
    sent = recording.read_bytes()[:1_000_000]
    host, port = served.listen.split(":")
    with socket.create_connection((host, int(port))) as slow:
        head = [
            f"PATCH {at} HTTP/1.1",
            f"Host: {served.listen}",
            f"Authorization: Bearer {served.token}",
            "Tus-Resumable: 1.0.0",
            "Content-Type: application/offset+octet-stream",
            "Upload-Offset: 0",
            f"Content-Length: {SIZE}",
        ]
        slow.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + sent)
        place = served.rig.state / "store" / "uploads" / at.rsplit("/", 1)[1]
        eventually(lambda: place.exists() and place.stat().st_size > 700_000, "most of it is written")
        assert served.daemon.stop() < 10
    [row] = served.rig.ask("SELECT received FROM uploads")
    assert row["received"] == len(sent)
    served.start_again()
    assert served.curl("-I", *tus, path=at)[1]["upload-offset"] == str(len(sent))
    served.daemon.stop()


def test_a_full_disk_turns_senders_away_and_the_service_goes_on(served: Served, recording: Path) -> None:
    """507 for a plain body and for a part, nothing half-made; with room again both are taken."""
    pid = served.daemon.process.pid
    tus = ("-H", "Tus-Resumable: 1.0.0")
    begun = served.curl("-X", "POST", *tus, "-H", f"Upload-Length: {SIZE}", path="/v1/uploads")
    part = (
        *tus,
        "-H",
        "Content-Type: application/offset+octet-stream",
        "-X",
        "PATCH",
        "-H",
        "Upload-Offset: 0",
    )
    plain = ("-X", "POST", "-T", recording)
    upload = (*part, "-T", recording)
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE, (4_000_000, resource.RLIM_INFINITY))
    for words, path in ((plain, "/v1/records"), (upload, begun[1]["location"])):
        status, headers, body = served.curl(*words, path=path)
        assert (status, headers["connection"], json.loads(body)["code"]) == (507, "close", "no_space")
    assert served.rig.ask("SELECT 1 FROM records") == []
    assert list((served.rig.state / "store" / "incoming").iterdir()) == []
    resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
    status, told, _ = served.curl("-I", *tus, path=begun[1]["location"])
    offset = int(told["upload-offset"])
    assert (status, offset <= 4_000_000) == (200, True)
    rest = recording.parent / "rest"
    rest.write_bytes(recording.read_bytes()[offset:])
    words = (*part[:-1], f"Upload-Offset: {offset}", "-T", rest)
    _, headers, _ = served.curl(*words, path=begun[1]["location"])
    served.check(headers["rubezh-record"], recording.read_bytes())
    assert served.curl(*plain)[0] == 201
    served.daemon.stop()


def test_no_secret_reaches_the_log_and_wrong_tokens_have_to_wait(served: Served) -> None:
    """Wherever a sender puts its token; a right one is let in from where the wrong ones came."""
    secret = served.token
    assert served.curl("-d", "x")[0] == 201
    for words in (
        ("-H", f"Idempotency-Key: {secret}", "-d", "x"),
        ("-H", f"X-Token: {secret}", "-d", "x"),
        ("-F", f"file=@/dev/null;filename={secret}"),
        ("-H", "Tus-Resumable: 1.0.0", "-H", f"Upload-Metadata: {secret}"),
    ):
        served.curl(*words)
    for path in (f"/v1/records?title={secret}", f"/v1/records/{secret}", f"/{secret}?token={secret}"):
        served.curl("-d", "x", path=path)
    mine, served.token = served.token, "rbz_" + "w" * 43
    statuses = [served.curl("-d", "x")[0] for _ in range(7)]
    assert statuses[:5] == [401] * 5
    assert statuses[-1] == 429
    status, headers, body = served.curl("-d", "x", path="/v1/uploads")
    assert (status, json.loads(body)["code"]) == (429, "too_many_wrong_tokens")
    assert 1 <= int(headers["retry-after"]) <= 12
    served.token = mine
    assert served.curl("-d", "x")[0] == 201
    served.daemon.stop()
    log = served.daemon.log_file.read_text()
    assert secret.removeprefix("rbz_") not in log
    assert "w" * 43 not in log
    refused = served.daemon.entries("tokens.refused")
    assert [(entry["source"], entry["a_minute"]) for entry in refused] == [("127.0.0.1", 5)]
    accepted = served.daemon.entries("submission.accepted")
    assert all(re.fullmatch("[0-9a-f]{16}", entry["request"]) for entry in accepted)
