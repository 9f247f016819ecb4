"""The one HTTP server: hypercorn's protocols on a unix socket and, if wanted, on TCP as well."""

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.logging import Logger
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework
from starlette.types import ASGIApp

from daemon.conversation import Conversation
from daemon.early_answer import EarlyAnswers
from storage.errors import Refused

MOST_CONVERSATIONS = 4096
_MOST_HEADER_BYTES = 16 * 1024
END_SECONDS = 2.0  # what is being answered may take so long when the server ends
_BACKLOG = 256
_LONGEST_PATH = 107  # what the kernel takes as the name of a socket

log = structlog.get_logger()


async def serve_web(
    app: ASGIApp,
    *,
    socket: Path,
    listen: str = "",
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `app` until cancelled, on `socket` (mode 0660) and, unless empty, on `listen` (`host:port`).

    Started with the addresses once both accept connections. When cancelled, it takes nothing new, gives
    answers under way two seconds and closes what is left. Raises Refused for an address it cannot have.
    """
    config = _config()
    with _local_socket(socket) as local:
        listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(local)), *await _tcp(listen)]
        server = _Conversations(ASGIWrapper(cast("ASGIFramework", EarlyAnswers(app))), config)
        async with trio.open_nursery() as nursery:
            handlers = await nursery.start(server.hold)
            try:
                task_status.started([_named(each.socket) for each in listeners])
                await trio.serve_listeners(server.converse, listeners, handler_nursery=handlers)
            finally:
                server.end()


class _Conversations:
    """The open connections of one server."""

    def __init__(self, app: ASGIWrapper, config: Config) -> None:
        self._app = app
        self._config = config
        self._context = WorkerContext(None)
        self._open: set[Conversation] = set()
        self._ending = trio.Event()
        self._left = trio.lowlevel.ParkingLot()

    async def hold(self, task_status: trio.TaskStatus[trio.Nursery]) -> None:
        """Give the connections a nursery that outlives a cancel by `END_SECONDS` at most."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as handlers:
                task_status.started(handlers)
                await self._ending.wait()
                await self._context.terminated.set()
                for conversation in self._open:
                    conversation.end()
                with trio.move_on_after(END_SECONDS):
                    while self._open:
                        await self._left.park()
                handlers.cancel_scope.cancel()

    def end(self) -> None:
        """Let idle connections end now and the others when they are done, or soon."""
        self._ending.set()

    async def converse(self, stream: trio.SocketStream) -> None:
        """Serve one connection; whatever goes wrong in it ends it alone."""
        if len(self._open) >= MOST_CONVERSATIONS:
            await stream.aclose()
            return
        conversation = Conversation(self._app, self._config, self._context, stream)
        self._open.add(conversation)
        try:
            await conversation.run()
        except* Exception as group:
            log.warning("connection.failed", exc_info=group)
        finally:
            self._open.discard(conversation)
            self._left.unpark_all()


class _Logger(Logger):
    """Hypercorn's own words, in our log; requests are not logged."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)

    async def warning(self, message: str, *args: object, **_: object) -> None:
        log.warning("library.warned", library="hypercorn", said=message % args if args else message)

    async def exception(self, message: str, *args: object, **_: object) -> None:
        log.warning("request.failed", said=message % args if args else message, exc_info=True)  # noqa: LOG014 - called where it is handled

    error = critical = warning


def _config() -> Config:
    config = Config()
    config.logger_class = _Logger
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.h11_max_incomplete_size = _MOST_HEADER_BYTES
    return config


@contextmanager
def _local_socket(path: Path) -> Iterator[socket.socket]:
    """Listen on a path; what a dead server left there is replaced, and nothing is left behind."""
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise Refused(f"the path {path} is too long for a socket; set intake.socket to a shorter one")
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            _free_place(path)
            listening.bind(os.fspath(path))
            path.chmod(0o660)
            mine = path.stat().st_ino
            listening.listen(_BACKLOG)
        except OSError as error:
            raise Refused(
                f"cannot listen on {path} ({error.strerror}); set intake.socket to another"
            ) from error
        try:
            yield listening
        finally:
            if path.exists() and path.stat().st_ino == mine:
                path.unlink()


def _free_place(path: Path) -> None:
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise Refused(f"{path} is a file and no socket; set intake.socket to another path")
    with socket.socket(socket.AF_UNIX) as knocking:
        knocking.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        if knocking.connect_ex(os.fspath(path)) == errno.ECONNREFUSED:
            path.unlink()
            return
    raise Refused(f"another process listens on {path}; stop it, or set intake.socket to another path")


async def _tcp(listen: str) -> list[trio.SocketListener]:
    if not listen:
        return []
    host, _, port = listen.rpartition(":")
    try:
        return await trio.open_tcp_listeners(int(port), host=host.strip("[]"), backlog=_BACKLOG)
    except OSError as error:
        cause = error.strerror or error
        raise Refused(f"cannot listen on {listen} ({cause}); set intake.listen to another address") from error


def _named(listening: trio.socket.SocketType) -> str:
    name = listening.getsockname()
    return name if isinstance(name, str) else f"{name[0]}:{name[1]}"
