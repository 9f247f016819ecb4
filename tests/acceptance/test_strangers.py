"""What the real service tells those who have no right to know: nothing, on any route."""

from collections.abc import Callable, Iterator
from typing import NamedTuple
from uuid import uuid4

import httpx
import pytest

from daemon.intake.app import OPERATIONS
from daemon.intake.operations import Operation
from tests.acceptance.rig import Rig
from tests.acceptance.test_clients import a_port

REVOKED = """UPDATE tokens SET revoked_at = now()
    WHERE account_id = (SELECT id FROM accounts WHERE name = %(name)s)"""
NAMES_THE_REQUEST = {"date", "rubezh-request", "x-request-id", "request-id"}


class Scene(NamedTuple):
    """A service with a record of anna's, and the tokens of those who ask for it."""

    unix: httpx.Client
    tcp: httpx.Client
    record_id: str
    tokens: dict[str, str]


@pytest.fixture
def scene(make_rig: Callable[..., Rig], dsn: str) -> Iterator[Scene]:
    """The real service, on its socket and over TCP."""
    listen = f"127.0.0.1:{a_port()}"
    rig = make_rig(dsn, intake={"listen": listen, "wrong_tokens": 100_000})
    daemon = rig.start(*rig.odd("endless"))
    anna, boris, revoked = (rig.account(name) for name in ("anna", "boris", "carl"))
    rig.ask(REVOKED, name="carl")
    record_id = str(daemon.submit(anna, b"RIFF of a kind"))
    tokens = {"none": "", "wrong": "rbz_wrong", "revoked": revoked, "another account's": boris}
    with daemon.client() as unix, httpx.Client(base_url=f"http://{listen}", trust_env=False) as tcp:
        yield Scene(unix, tcp, record_id, tokens)


def asked(client: httpx.Client, operation: Operation, record_id: str, token: str) -> httpx.Response:
    """Ask as the operation is declared, with nothing but what every sender may know."""
    path = operation.path.replace("{id}", record_id).replace("{form}", "txt").replace("{model}", "base")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if operation.method == "PATCH":
        return client.patch(path, json={"title": "Mine", "edition": 1}, headers=headers)
    return client.request(operation.method, path, headers=headers)


def shown(answer: httpx.Response, record_id: str) -> tuple[int, bytes, dict[str, str]]:
    """Return all that an answer tells, without what names the request itself."""
    headers = {name: value for name, value in answer.headers.items() if name not in NAMES_THE_REQUEST}
    return answer.status_code, answer.content.replace(record_id.encode(), b"ID"), headers


OF_A_RECORD = [each for each in OPERATIONS if "/records/{id}" in each.path]


def test_s_i25_no_route_tells_a_stranger_whether_a_record_exists(scene: Scene) -> None:
    """The record that is there and one that never was are answered alike, whoever asks, on both doors."""
    for operation in OF_A_RECORD:
        for client in (scene.unix, scene.tcp):
            if client is scene.unix and operation.path.startswith("/v1/service/"):
                continue  # whoever may open the socket is the service owner
            for whose, token in scene.tokens.items():
                there, never = (
                    shown(asked(client, operation, each, token), each)
                    for each in (scene.record_id, str(uuid4()))
                )
                case = f"{operation.method} {operation.path}, token: {whose}"
                assert there == never, case
                assert there[0] == (403 if operation.path.startswith("/v1/service/") else 404) or (
                    there[0] == 401 and whose != "another account's"
                ), case
                assert scene.record_id.encode() not in there[1], case


def test_nothing_but_the_sign_of_life_is_told_without_a_token(scene: Scene) -> None:
    """And nothing of anybody's comes with another account's."""
    for operation in (each for each in OPERATIONS if each.tag != "uploads"):
        for whose, token in scene.tokens.items():
            answer = asked(scene.tcp, operation, scene.record_id, token)
            case = f"{operation.method} {operation.path}, token: {whose}"
            assert scene.record_id not in answer.text, case
            if operation.path == "/healthz":
                assert answer.status_code == 200
            elif whose != "another account's":
                assert answer.status_code == 401, case
