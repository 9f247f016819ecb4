"""Those who call at the doors from inside the machine: `python -m tests.systemd.callers WHAT TOKEN ...`.

`submit TOKEN HEX` hands in a recording; `poll TOKEN ID` has several callers poll over and over until stdin is
closed; `upload TOKEN SECONDS` hands one in that takes so long; `wait TOKEN ID` waits for news.
Each prints what came of it as JSON.
"""

import http.client
import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

UNIX, TCP = "/run/rubezh/rubezh.sock", ("127.0.0.1", 7823)
PATIENCE_SECONDS = 60.0
KINDS = ("unix", "unix", "tcp", "tcp")


class Connection(http.client.HTTPConnection):
    """One connection to one of the doors."""

    def __init__(self, kind: str) -> None:
        super().__init__("rubezh", timeout=PATIENCE_SECONDS)
        self._kind = kind

    def connect(self) -> None:
        """Connect to the door of our kind."""
        family, place = (socket.AF_UNIX, UNIX) if self._kind == "unix" else (socket.AF_INET, TCP)
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(place)


def headers(token: str, **more: str) -> dict[str, str]:
    """Return a request's headers."""
    return {"Authorization": f"Bearer {token}", **more}


def submit(token: str, recording: str) -> dict[str, Any]:
    """Hand in a recording."""
    connection = Connection("unix")
    connection.request("POST", "/v1/records?filename=x.wav", bytes.fromhex(recording), headers(token))
    answer = connection.getresponse()
    told: dict[str, Any] = json.load(answer)
    assert answer.status == http.client.CREATED, told
    return told


def poll(token: str, record: str) -> dict[str, Any]:
    """Poll on both doors, with a connection for each poll, until stdin is closed."""
    over, counted, worst = threading.Event(), Counter[str](), [0.0]

    def call(kind: str) -> None:
        while not over.is_set():
            began = time.monotonic()
            try:
                connection = Connection(kind)
                connection.request("GET", f"/v1/records/{record}", headers=headers(token))
                answer = connection.getresponse()
                answer.read()
                connection.close()
                counted[f"{kind} {answer.status}"] += 1
            except (OSError, http.client.HTTPException) as error:
                counted[f"{kind} {type(error).__name__}"] += 1
            worst[0] = max(worst[0], time.monotonic() - began)
            time.sleep(0.01)

    threads = [threading.Thread(target=call, args=(kind,)) for kind in KINDS]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
    return {"counted": counted, "worst_seconds": worst[0]}


def upload(token: str, seconds: str) -> dict[str, Any]:
    """Hand in a recording that takes so long to send."""

    def parts() -> Iterator[bytes]:
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            yield b"slowly" * 100
            time.sleep(0.05)

    connection = Connection("tcp")
    query, more = "filename=slow.wav", {"Content-Type": "application/octet-stream"}
    early = ""
    try:
        connection.request(
            "POST", f"/v1/records?{query}", parts(), headers(token, **more), encode_chunked=True
        )
    except (BrokenPipeError, ConnectionResetError) as error:
        early = type(error).__name__  # it was answered before its end, or cut off
    try:
        answer = connection.getresponse()
        return {"early": early, **json.load(answer), "status": answer.status}
    except (OSError, http.client.HTTPException, ValueError) as error:
        return {"early": early, "status": 0, "error": type(error).__name__}


def wait(token: str, record: str) -> dict[str, Any]:
    """Ask for news of a record, and wait for them for half a minute."""
    connection, began = Connection("tcp"), time.monotonic()
    tag = {"If-None-Match": _tag(token, record)}
    connection.request("GET", f"/v1/records/{record}", headers=headers(token, Prefer="wait=30", **tag))
    sys.stdout.write("waits\n")
    sys.stdout.flush()
    answer = connection.getresponse()
    return {"status": answer.status, "seconds": time.monotonic() - began}


def _tag(token: str, record: str) -> str:
    connection = Connection("tcp")
    connection.request("GET", f"/v1/records/{record}", headers=headers(token))
    return str(connection.getresponse().headers["ETag"])


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    sys.stdout.write(
        json.dumps({"submit": submit, "poll": poll, "upload": upload, "wait": wait}[what](*words)) + "\n"
    )
