"""A multipart form taken apart as it arrives: the file's bytes go on at once, only small fields are kept."""

import logging
from http import HTTPStatus

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from daemon.intake.problems import Problem

# It warns of each malformed form, as often as a sender likes; the sender is told, who alone can mend it.
logging.getLogger("python_multipart").setLevel(logging.ERROR)

_LONGEST_BOUNDARY = 70  # RFC 2046
_MOST_PARTS = 100
_MOST_FIELD_BYTES = 128 * 1024


def boundary_of(content_type: str | None) -> bytes | None:
    """Return the boundary of a multipart form; None when the body is no such form."""
    kind, options = parse_options_header(content_type)
    return options.get(b"boundary", b"") if kind.lower() == b"multipart/form-data" else None


class Form:
    """One form: `feed` it, then `finish`; `fields` are its names and texts, `filename` is the file's own."""

    def __init__(self, boundary: bytes) -> None:
        if not 1 <= len(boundary) <= _LONGEST_BOUNDARY:
            raise _malformed(f"its Content-Type must name a boundary of 1 to {_LONGEST_BOUNDARY} letters")
        self.fields: list[tuple[str, str]] = []
        self.filename = ""
        self._file_parts: list[bytes] = []
        self._files = 0
        self._parts = 0
        self._whole = False
        self._begin()
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._take_header_name,
                "on_header_value": self._take_header_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._open_part,
                "on_part_data": self._take_data,
                "on_part_end": self._end_part,
                "on_end": self._end,
            },
        )

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes of the body; return those of them that are the file's."""
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise _malformed("it does not follow its own boundary") from error
        taken, self._file_parts = b"".join(self._file_parts), []
        return taken

    def finish(self) -> None:
        """Check that the form is whole and has its one file."""
        if not self._whole:
            raise _malformed("it ends before its last boundary")
        if self._files != 1:
            raise _malformed(f"it holds {self._files} parts named file, and needs one")

    def _begin(self) -> None:
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._name = ""
        self._is_file = False
        self._field = bytearray()

    def _take_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _take_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value
        self._header_name = self._header_value = b""

    def _open_part(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise _malformed(f"it has more than {_MOST_PARTS} parts")
        _, options = parse_options_header(self._disposition)
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        self._is_file = self._name == "file"
        self._files += self._is_file
        if self._files > 1:
            raise _malformed("it holds more than one part named file")
        if self._is_file:
            self.filename = options.get(b"filename", b"").decode("utf-8", "replace")

    def _take_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self._file_parts.append(data[start:end])
            return
        self._field += data[start:end]
        if len(self._field) + sum(len(text) for _, text in self.fields) > _MOST_FIELD_BYTES:
            raise _malformed(f"its fields hold more than {_MOST_FIELD_BYTES} bytes")

    def _end_part(self) -> None:
        if not self._is_file:
            self.fields.append((self._name, self._field.decode("utf-8", "replace")))

    def _end(self) -> None:
        self._whole = True


def _malformed(cause: str) -> Problem:
    return Problem(
        HTTPStatus.BAD_REQUEST, "malformed_form", f"The form cannot be read: {cause}. Send it again whole."
    )
