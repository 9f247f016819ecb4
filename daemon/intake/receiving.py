"""A request's recording on its way in: a plain body or a form's file, straight into what takes it."""

import hashlib
from typing import Protocol

from starlette.requests import Request

from daemon.intake.body import Body, declared_size, empty_body, too_large
from daemon.intake.multipart import Form, boundary_of
from daemon.intake.options import Options, read_options

_FORM_BYTES = 256 * 1024  # what a form may hold besides its file


class Sink(Protocol):
    """What takes a recording's bytes, `size` of them so far."""

    @property
    def size(self) -> int:
        """How many bytes were taken."""

    async def expect(self, size: int) -> None:
        """Say whether so many may come; raises NoSpace."""

    async def write(self, chunk: bytes) -> None:
        """Take more of them."""


class Weighed:
    """A sink that keeps nothing but the number of the bytes and their SHA-256."""

    def __init__(self) -> None:
        """Begin with no bytes."""
        self.size = 0
        self._sha256 = hashlib.sha256()

    async def expect(self, size: int) -> None:
        """Have room for every size."""

    async def write(self, chunk: bytes) -> None:
        """Take more bytes."""
        self.size += len(chunk)
        self._sha256.update(chunk)

    @property
    def sha256(self) -> bytes:
        """Return the SHA-256 of what was taken."""
        return self._sha256.digest()


async def receive(request: Request, sink: Sink, largest: int) -> Options:
    """Bring the recording into `sink`; wrong options of a plain body are told before it is read."""
    given = request.query_params.multi_items()
    boundary = boundary_of(request.headers.get("content-type"))
    if boundary is None:
        options = read_options(given)
        body = Body(request, largest)
        if declared_size(request) == 0:
            raise empty_body()
        await sink.expect(declared_size(request) or 0)
        while chunk := await body.read():
            await sink.write(chunk)
        if not sink.size:
            raise empty_body()
        return options
    form = Form(boundary)
    await receive_form(request, form, sink, largest)
    given += form.fields
    if not any(name == "filename" for name, _ in given):
        given.append(("filename", form.filename))
    return read_options(given)


async def receive_form(request: Request, form: Form, sink: Sink, largest: int) -> None:
    """Bring a form's file into `sink` and read the form to its end."""
    body = Body(request, largest + _FORM_BYTES)
    await sink.expect(declared_size(request) or 0)
    while chunk := await body.read():
        await sink.write(form.feed(chunk))
        if sink.size > largest:
            raise too_large(largest)
    form.finish()
    if not sink.size:
        raise empty_body()
