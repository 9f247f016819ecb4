"""SaluteSpeech (SmartSpeech), asynchronous, by REST: token, upload, task, check, download.

Written from the vendor's documents: unknown fields are refused, a call without its RqUID is, too.
"""

import base64
import io
import json
import re
import time
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl
from uuid import UUID, uuid4

from attrs import define, field, fields_dict

from tests.emulators.emulator import Refuses, as_json
from tests.emulators.fields import Unfit, check
from tests.emulators.ledger import Call
from tests.emulators.serving import Reply, Request
from tests.emulators.speech import Audio, Utterance, listen
from tests.emulators.tones import container_of

_ROUTES: Final = {
    ("POST", "/api/v2/oauth"): "token",
    ("POST", "/rest/v1/data:upload"): "upload",
    ("POST", "/rest/v1/speech:async_recognize"): "start",
    ("GET", "/rest/v1/task:get"): "check",
    ("GET", "/rest/v1/task:cancel"): "cancel",
    ("GET", "/rest/v1/data:download"): "result",
}
_SCOPES: Final = {"SALUTE_SPEECH_PERS", "SALUTE_SPEECH_CORP", "SBER_SPEECH"}
_PCM: Final = re.compile(r"audio/x-pcm;\s*bit=16;\s*rate=[0-9]+")
_MEDIA: Final = {
    "audio/mpeg": ("mp3", ""),
    "audio/ogg;codecs=opus": ("ogg", "opus"),
    "audio/flac": ("flac", "flac"),
    "application/octet-stream": ("", ""),
}
_ENCODINGS: Final = {
    "OPUS": ("ogg", "opus"),
    "MP3": ("mp3", ""),
    "FLAC": ("flac", "flac"),
    "PCM_S16LE": ("", ""),
}
_SHAPE: Final = {
    "options": {
        "model": {"general", "media", "ivr", "callcenter"},
        "audio_encoding": {*_ENCODINGS, "ALAW", "MULAW"},
        "sample_rate": int,
        "language": {"ru-RU", "en-US", "kk-KZ", "ky-KG", "uz-UZ"},
        "channels_count": int,
        "hypotheses_count": int,
        "enable_profanity_filter": bool,
        "no_speech_timeout": str,
        "max_speech_timeout": str,
        "hints": {"words": [str], "enable_letters": bool, "eou_timeout": str},
        "speaker_separation_options": {"enable": bool, "enable_only_main_speaker": bool, "count": int},
        "insight_models": [{"csi", "call_features", "is_solved"}],
    },
    "request_file_id": str,
}
_FORM: Final = "application/x-www-form-urlencoded"


@define(kw_only=True)
class Manners:
    """How the service is just now; a test changes it.

    `polls`: answers "running" before the end, -1 for ever. `end`: the status of the end. `families`: "whole",
    "both" (the parts by speaker, and the whole of them), "speakers" (the parts alone). `zipped`: the result
    comes as a ZIP file. `token_seconds`: how long a token serves.
    """

    client: str = "a-client"
    secret: str = "a-secret"
    token_seconds: float = 1800.0
    polls: int = 1
    end: str = "DONE"
    error: str = "internal error"
    families: str = "whole"
    zipped: bool = False
    normalized: bool = True
    largest_body: int = 2**30
    parallel: int = 10


@define
class File:
    """What was uploaded."""

    data: bytes
    media: str


@define
class Task:
    """One recognition."""

    id: str
    audio: Audio
    polls: int
    result: str = ""
    is_over: bool = False


@define
class Salute:
    """The service."""

    manners: Manners = field(factory=Manners)
    tokens: dict[str, float] = field(factory=dict)
    files: dict[str, File] = field(factory=dict)
    tasks: dict[str, Task] = field(factory=dict)
    results: dict[str, Audio] = field(factory=dict)

    def operation_of(self, request: Request) -> str:
        """Return what is asked for."""
        return _ROUTES.get((request.method, request.path), "")

    def change(self, wishes: Mapping[str, Any]) -> None:
        """Take on another manner; `forget` drops files, tasks and results, `revoke` every token."""
        for name, value in wishes.items():
            if name == "forget":
                for each in (self.files, self.tasks, self.results):
                    each.clear()
            elif name == "revoke":
                self.tokens.clear()
            elif name in fields_dict(Manners):
                setattr(self.manners, name, value)
            else:
                raise KeyError(name)

    def limited(self, retry_after: str | None) -> Reply:
        """Say that there were too many calls."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return _refusal(429, "Too many requests", headers).reply

    def serve(self, request: Request, call: Call) -> Reply:
        """Do what is asked."""
        if call.operation == "token":
            return self._token(request)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens.get(token, 0.0) < time.time():
            raise _refusal(401, f"Token {token} has expired")
        match call.operation:
            case "upload":
                return self._upload(request, call)
            case "start":
                return self._start(request, call)
            case "check":
                return self._check(request.query.get("id", ""), call)
            case "result":
                return self._result(request.query.get("response_file_id", ""), call)
            case _:
                raise _refusal(404, "Not Found")

    def _token(self, request: Request) -> Reply:
        try:
            UUID(request.headers.get("rquid", ""), version=4)
        except ValueError as error:
            raise _denial(1, "RqUID is missing or is no uuid4") from error
        if request.headers.get("content-type", "").partition(";")[0] != _FORM:
            raise _denial(2, f"content type must be {_FORM}")
        if dict(parse_qsl(request.body.decode("latin-1"))).get("scope") not in _SCOPES:
            raise _denial(7, "scope is empty or unknown")
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        known = base64.b64encode(f"{self.manners.client}:{self.manners.secret}".encode()).decode()
        if kind != "Basic" or secret != known:
            raise _denial(6, "credentials doesn't match db data", 401)
        token, until = f"token-{uuid4().hex}", time.time() + self.manners.token_seconds
        self.tokens[token] = until
        return as_json({"access_token": token, "expires_at": round(until * 1000)})

    def _upload(self, request: Request, call: Call) -> Reply:
        media = request.headers.get("content-type", "")
        wanted = _MEDIA.get(media.replace(" ", ""))
        if wanted is None and not _PCM.fullmatch(media):
            raise _refusal(400, f"unsupported content type: {media}")
        if len(request.body) > self.manners.largest_body:
            raise _refusal(413, f"file is larger than {self.manners.largest_body} bytes")
        if not request.body:
            raise _refusal(400, "empty body")
        file_id = uuid4().hex
        self.files[file_id] = File(request.body, media)
        call.about = file_id
        return as_json({"status": 200, "result": {"request_file_id": file_id}})

    def _start(self, request: Request, call: Call) -> Reply:
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise _refusal(400, "content type must be application/json")
        if sum(not task.is_over for task in self.tasks.values()) >= self.manners.parallel:
            raise Refuses(self.limited(None))
        try:
            asked = json.loads(request.body)
            check(asked, _SHAPE)
        except ValueError as error:
            raise _refusal(400, str(error)) from error
        file = self.files.get(asked.get("request_file_id", ""))
        if file is None:
            raise _refusal(404, "request file is not found")
        options = asked.get("options", {})
        if "audio_encoding" not in options:
            raise _refusal(400, "audio_encoding is required")
        try:
            audio = _heard(file, options)
        except ValueError as error:
            raise _refusal(400, str(error)) from error
        task = Task(uuid4().hex, audio, self.manners.polls)
        self.tasks[task.id] = task
        call.about = task.id
        call.noted = {"seconds": audio.seconds, "channels": audio.channels, "asked": asked}
        return as_json({"status": 200, "result": _shown(task, "NEW")})

    def _check(self, task_id: str, call: Call) -> Reply:
        call.about = task_id
        task = self.tasks.get(task_id)
        if task is None:
            raise _refusal(404, "task is not found")
        if task.polls:
            task.polls -= 1 if task.polls > 0 else 0
            return as_json({"status": 200, "result": _shown(task, "RUNNING")})
        task.is_over = True
        shown = _shown(task, self.manners.end)
        if self.manners.end == "ERROR":
            return as_json({"status": 200, "result": {**shown, "error": self.manners.error}})
        if self.manners.end == "DONE":
            task.result = task.result or uuid4().hex
            self.results[task.result] = task.audio
            return as_json({"status": 200, "result": {**shown, "response_file_id": task.result}})
        return as_json({"status": 200, "result": shown})

    def _result(self, file_id: str, call: Call) -> Reply:
        call.about = file_id
        audio = self.results.get(file_id)
        if audio is None:
            raise _refusal(404, "response file is not found")
        parts = [part for utterance in audio.utterances for part in self._parts(utterance)]
        body = json.dumps(parts, ensure_ascii=False).encode()
        return Reply(
            headers={"Content-Type": "application/octet-stream"},
            body=_zipped(body) if self.manners.zipped else body,
        )

    def _parts(self, utterance: Utterance) -> Iterator[dict[str, Any]]:
        if self.manners.families in ("both", "speakers"):
            middle = (len(utterance.words) + 1) // 2
            for speaker, words in enumerate((utterance.words[:middle], utterance.words[middle:])):
                if words:
                    yield self._part(Utterance(channel=utterance.channel, words=words), speaker, eou=False)
        if self.manners.families in ("both", "whole"):
            yield self._part(utterance, -1, eou=True)

    def _part(self, utterance: Utterance, speaker: int, *, eou: bool) -> dict[str, Any]:
        result = {
            "text": utterance.text,
            "normalized_text": utterance.normalized if self.manners.normalized else "",
            "start": _duration(utterance.start),
            "end": _duration(utterance.end),
            "word_alignments": [
                {"word": word.text, "start": _duration(word.start), "end": _duration(word.end)}
                for word in utterance.words
            ],
        }
        return {
            "results": [result],
            "eou": eou,
            "emotions_result": {"positive": 0.1, "neutral": 0.9, "negative": 0},
            "processed_audio_start": _duration(utterance.start),
            "processed_audio_end": _duration(utterance.end),
            "backend_info": {"model_name": "general", "model_version": "1", "server_version": "1"},
            "channel": utterance.channel,
            "speaker_info": {"speaker_id": speaker, "main_speaker_confidence": 1},
            "eou_reason": "ORGANIC",
            "insight": "",
            "person_identity": {
                "age": "AGE_NONE",
                "gender": "GENDER_NONE",
                "age_score": 0,
                "gender_score": 0,
            },
        }


def _heard(file: File, options: Mapping[str, Any]) -> Audio:
    """Return what is heard; raises ValueError where the file is not what it is said to be."""
    form, codec = _ENCODINGS.get(options["audio_encoding"], ("?", ""))
    channels = options.get("channels_count", 1)
    if options["audio_encoding"] == "PCM_S16LE":
        return listen(file.data, raw_channels=channels)
    found_form, found_codec = container_of(file.data)
    if found_form != form or (codec and found_codec != codec):
        raise Unfit(f"audio is not {options['audio_encoding']}")
    if file.media != "application/octet-stream" and _MEDIA[file.media.replace(" ", "")][0] != form:
        raise Unfit("audio_encoding is not that of the file")
    audio = listen(file.data)
    if audio.channels != channels:
        raise Unfit(f"audio has {audio.channels} channels and not {channels}")
    return audio


def _shown(task: Task, status: str) -> dict[str, Any]:
    return {
        "id": task.id,
        "created_at": "2026-08-01T10:00:00.000000Z",
        "updated_at": "2026-08-01T10:00:01.000000Z",
        "status": status,
    }


def _refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Refuses:
    return Refuses(as_json({"status": status, "message": message}, status, **(headers or {})))


def _denial(code: int, message: str, status: int = 400) -> Refuses:
    return Refuses(as_json({"code": code, "message": message}, status))


def _duration(seconds: float) -> str:
    return f"{seconds:.3f}s"


def _zipped(body: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("result.json", body)
    return file.getvalue()
