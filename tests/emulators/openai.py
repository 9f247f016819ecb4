"""An OpenAI-compatible transcription endpoint, in the manners of the servers that call themselves so.

Written from the vendor's description, and from what was reported of the others.
"""

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field, fields_dict, frozen
from python_multipart.multipart import MultipartParser, parse_options_header

from tests.emulators.emulator import Refuses, as_json
from tests.emulators.ledger import Call
from tests.emulators.serving import Reply, Request
from tests.emulators.speech import Audio, listen

_SUFFIXES: Final = ("flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm")
_FORMATS: Final = ("json", "text", "srt", "verbose_json", "vtt", "diarized_json")
_FIELDS: Final = frozenset(
    (
        *("file", "model", "language", "languages[]", "keywords[]", "prompt", "response_format"),
        *("temperature", "include[]", "timestamp_granularities[]", "stream", "chunking_strategy"),
        *("known_speaker_names[]", "known_speaker_references[]"),
    )
)


@define(kw_only=True)
class Manners:
    """How the endpoint is just now; a test changes it.

    `duration`: "number", "absent" or "text". `segments`, `words`: "there", "absent" or "null". `language`:
    "name" or "code". `times`: "s", "ms" or "ns". `plain`: text/plain where JSON was asked for. `empty`: no
    text at all. `strict`: fields that the vendor does not know are refused.
    """

    keys: list[str] = field(factory=lambda: ["a-key"])
    models: list[str] = field(factory=lambda: ["whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe"])
    duration: str = "number"
    segments: str = "there"
    words: str = "there"
    language: str = "name"
    times: str = "s"
    plain: bool = False
    empty: bool = False
    strict: bool = True
    largest_body: int = 26_214_400
    longest_seconds: float = 1400.0


@frozen(kw_only=True)
class _Form:
    """The parts of a form: `file` with its name and content type."""

    fields: Mapping[str, list[str]]
    file: bytes
    filename: str
    media: str

    def last(self, name: str, otherwise: str) -> str:
        """Return the last value of a field."""
        return self.fields.get(name, [otherwise])[-1]


@define
class OpenAI:
    """The service."""

    manners: Manners = field(factory=Manners)

    def operation_of(self, request: Request) -> str:
        """Return what is asked for."""
        if request.method == "GET" and request.path.endswith("/models"):
            return "models"
        if request.method == "POST" and request.path.endswith("/audio/translations"):
            return "translate"
        is_asked = request.method == "POST" and request.path.endswith("/audio/transcriptions")
        return "transcribe" if is_asked else ""

    def change(self, wishes: Mapping[str, Any]) -> None:
        """Take on another manner."""
        for name, value in wishes.items():
            if name not in fields_dict(Manners):
                raise KeyError(name)
            setattr(self.manners, name, value)

    def limited(self, retry_after: str | None) -> Reply:
        """Say that there were too many calls."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return _refusal(429, "Rate limit reached", "rate_limit_exceeded", headers=headers).reply

    def serve(self, request: Request, call: Call) -> Reply:
        """Do what is asked."""
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.manners.keys and key not in self.manners.keys:
            raise _refusal(401, f"Incorrect API key provided: {key}.", "invalid_api_key")
        if call.operation == "models":
            models = [{"id": name, "object": "model"} for name in self.manners.models]
            return as_json({"object": "list", "data": models})
        if call.operation not in ("transcribe", "translate"):
            raise _refusal(404, f"Invalid URL ({request.method} {request.path})")
        most, sent = self.manners.largest_body, len(request.body)
        if sent > most:
            raise _refusal(413, f"Maximum content size limit ({most}) exceeded ({sent} bytes read)")
        form = _form_of(request)
        self._check(form)
        try:
            audio = listen(form.file, mixed=True)
        except ValueError as error:
            raise _no_audio() from error
        if audio.seconds > self.manners.longest_seconds:
            longest = f"{self.manners.longest_seconds:g} seconds which is the maximum for this model"
            told = f"audio duration {audio.seconds} seconds is longer than {longest}"
            raise _refusal(400, told, "invalid_value")
        call.noted = {
            "seconds": audio.seconds,
            "asked": dict(form.fields),
            "name": form.filename,
            "media": form.media,
        }
        return self._said(audio, form)

    def _check(self, form: _Form) -> None:
        model, wanted = form.last("model", ""), form.last("response_format", "json")
        if self.manners.strict and (unknown := set(form.fields) - _FIELDS):
            raise _refusal(400, f"Unrecognized request argument supplied: {min(unknown)}", param=min(unknown))
        if model not in self.manners.models:
            raise _refusal(404, f"The model '{model}' does not exist", "model_not_found")
        if wanted not in _FORMATS:
            raise _refusal(400, f"response_format '{wanted}' is unknown", "unsupported_value")
        if model.startswith("gpt-4o") and wanted in ("verbose_json", "srt", "vtt"):
            told = f"response_format '{wanted}' is not compatible with model '{model}'."
            raise _refusal(400, told, "unsupported_value", param="response_format")
        if "timestamp_granularities[]" in form.fields and wanted != "verbose_json":
            raise _refusal(400, "timestamp_granularities needs verbose_json", "unsupported_value")
        if form.filename.rpartition(".")[2].lower() not in _SUFFIXES:
            raise _no_audio()

    def _said(self, audio: Audio, form: _Form) -> Reply:
        wanted, language = form.last("response_format", "json"), form.last("language", "")
        asked = form.fields.get("timestamp_granularities[]", [])
        utterances = () if self.manners.empty else audio.utterances
        text = " ".join(each.normalized for each in utterances)
        if self.manners.plain or wanted == "text":
            return Reply(headers={"Content-Type": "text/plain; charset=utf-8"}, body=f"{text}\n".encode())
        if wanted != "verbose_json":
            return as_json({"text": text, "usage": {"type": "duration", "seconds": round(audio.seconds)}})
        code = language or "ru"
        said: dict[str, Any] = {
            "task": "transcribe",
            "language": "russian" if self.manners.language == "name" and code == "ru" else code,
            "text": text,
        }
        if self.manners.duration != "absent":
            said["duration"] = f"{audio.seconds:.2f}" if self.manners.duration == "text" else audio.seconds
        if self.manners.segments == "there":
            said["segments"] = [
                {
                    "id": number,
                    "seek": 0,
                    "start": self._time(each.start),
                    "end": self._time(each.end),
                    "text": f" {each.normalized}",
                    "tokens": [],
                    "temperature": 0.0,
                    "avg_logprob": -0.2,
                    "compression_ratio": 1.2,
                    "no_speech_prob": 0.01,
                }
                for number, each in enumerate(utterances)
            ]
        elif self.manners.segments == "null":
            said["segments"] = None
        if self.manners.words == "there" and "word" in asked:
            said["words"] = [
                {"word": word.text, "start": self._time(word.start), "end": self._time(word.end)}
                for each in utterances
                for word in each.words
            ]
        elif self.manners.words == "null":
            said["words"] = None
        return as_json(said)

    def _time(self, seconds: float) -> float:
        return {"s": seconds, "ms": round(seconds * 1e3), "ns": round(seconds * 1e9)}[self.manners.times]


def _form_of(request: Request) -> _Form:
    """Return the parts of a form; refuses what is none, or has no file."""
    media, options = parse_options_header(request.headers.get("content-type", ""))
    if media != b"multipart/form-data" or b"boundary" not in options:
        raise _refusal(400, "Could not parse multipart form")
    parts: list[tuple[dict[str, bytes], bytearray]] = []
    name = bytearray()
    value = bytearray()

    def header_ended() -> None:
        parts[-1][0][name.decode("latin-1").lower()] = bytes(value)
        name.clear()
        value.clear()

    parser = MultipartParser(
        options[b"boundary"],
        {
            "on_part_begin": lambda: parts.append(({}, bytearray())),
            "on_header_field": lambda data, start, end: name.extend(data[start:end]),
            "on_header_value": lambda data, start, end: value.extend(data[start:end]),
            "on_header_end": header_ended,
            "on_part_data": lambda data, start, end: parts[-1][1].extend(data[start:end]),
        },
    )
    parser.write(request.body)
    parser.finalize()
    fields: dict[str, list[str]] = {}
    file: tuple[bytes, str, str] | None = None
    for headers, body in parts:
        _, about = parse_options_header(headers.get("content-disposition", b""))
        if b"filename" in about:
            file = (
                bytes(body),
                about[b"filename"].decode(),
                headers.get("content-type", b"").decode("latin-1"),
            )
        else:
            fields.setdefault(about.get(b"name", b"").decode(), []).append(body.decode())
    if file is None:
        raise _refusal(400, "you must provide a file")
    return _Form(fields=fields, file=file[0], filename=file[1], media=file[2])


def _refusal(
    status: int,
    message: str,
    code: str | None = None,
    *,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Refuses:
    kind = "invalid_request_error" if status < 500 else "server_error"
    told = {"message": message, "type": kind, "param": param, "code": code}
    return Refuses(as_json({"error": told}, status, **(headers or {})))


def _no_audio() -> Refuses:
    return _refusal(400, f"Invalid file format. Supported formats: {list(_SUFFIXES)}")
