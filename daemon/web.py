"""The one HTTP server: hypercorn's protocols on a unix socket and, if wanted, on TCP as well."""

import resource
import socket as sockets
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.logging import Logger
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.conversation import Conversation
from daemon.early_answer import EarlyAnswers
from daemon.last_call import LAST_CALL, LastCall
from daemon.listeners import inherited_doors, local_door, name_of, tcp_doors

MOST_CONVERSATIONS = 4096
_OTHER_DESCRIPTORS = 1024  # files, children, the database
_MOST_HEADER_BYTES = 16 * 1024
END_SECONDS = 2.0  # what is being answered may take so long when the server ends
LAST_CALL_SECONDS = (
    1.0  # and for so much of it bodies are still read; what is left is for telling their senders
)

log = structlog.get_logger()


async def serve_web(
    app: ASGIApp,
    *,
    socket: Path,
    listen: str = "",
    inherited: Sequence[sockets.socket] = (),
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `app` until cancelled, on `socket` (mode 0660) and, unless empty, on `listen` (`host:port`).

    It serves the `inherited` sockets as well; when one of them is a Unix socket, `socket` is a link to it.

    Started with the addresses once all accept connections. When cancelled, it takes nothing new, gives
    answers under way two seconds and closes what is left; a body that comes until then is given one, and
    its reader learns of the `LastCall`. Raises Refused for an address it cannot have.
    """
    config = _config()
    _make_room()
    with local_door(socket, inherited) as local:
        listeners = [*local, *inherited_doors(inherited), *await tcp_doors(listen)]
        server = _Conversations(app, config)
        async with trio.open_nursery() as nursery:
            handlers = await nursery.start(server.hold)
            try:
                task_status.started([name_of(each.socket) for each in listeners])
                await trio.serve_listeners(server.converse, listeners, handler_nursery=handlers)
            finally:
                server.end()


def _make_room() -> None:
    """Let as many connections be open as are taken, as far as the system lets us say so ourselves."""
    wanted = MOST_CONVERSATIONS + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Conversations:
    """The open connections of one server."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        self._last_call = LastCall()
        self._app = ASGIWrapper(cast("ASGIFramework", EarlyAnswers(_Told(app, self._last_call))))
        self._config = config
        self._context = WorkerContext(None)
        self._open: set[Conversation] = set()
        self._ending = trio.Event()

    async def hold(self, task_status: trio.TaskStatus[trio.Nursery]) -> None:
        """Give the connections a nursery that outlives a cancel by `END_SECONDS` at most.

        That includes those which were accepted in the last moment and have not begun yet.
        """
        with trio.CancelScope(shield=True) as ending:
            async with trio.open_nursery() as handlers:
                task_status.started(handlers)
                await self._ending.wait()
                ending.deadline = trio.current_time() + END_SECONDS
                self._last_call.announce(LAST_CALL_SECONDS)
                await self._context.terminated.set()
                for conversation in self._open:
                    conversation.end()

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
        if self._ending.is_set():
            conversation.end()
        try:
            await conversation.run()
        except* Exception as group:
            log.warning("connection.failed", exc_info=group)
        finally:
            self._open.discard(conversation)


class _Told:
    """An ASGI application around another one, which lets its requests know of the last call."""

    def __init__(self, app: ASGIApp, last_call: LastCall) -> None:
        self._app = app
        self._last_call = last_call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application."""
        await self._app({**scope, LAST_CALL: self._last_call}, receive, send)


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
