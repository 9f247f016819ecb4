"""Yandex SpeechKit v3, asynchronous, by REST: start, check, result, delete.

Written from the vendor's documents: the shapes of requests are checked, results come as a stream of JSON.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from attrs import define, field, fields_dict

from tests.emulators.emulator import Refuses, as_json
from tests.emulators.fields import INTEGER, Unfit, camel, check
from tests.emulators.ledger import Call
from tests.emulators.serving import Reply, Request
from tests.emulators.speech import Audio, Utterance, listen
from tests.emulators.tones import container_of

_ROUTES: Final = {
    ("POST", "/stt/v3/recognizeFileAsync"): "start",
    ("GET", "/stt/v3/getRecognition"): "result",
    ("DELETE", "/stt/v3/deleteRecognition"): "delete",
}
_CONTAINERS: Final = {"WAV": ("wav", ""), "OGG_OPUS": ("ogg", "opus"), "MP3": ("mp3", "")}
_SHAPE: Final = {
    "uri": str,
    "content": str,
    "recognitionModel": {
        "model": {"general", "general:rc", "general:deprecated", "deferred-general"},
        "audioFormat": {
            "containerAudio": {"containerAudioType": set(_CONTAINERS)},
            "rawAudio": {
                "audioEncoding": {"LINEAR16_PCM"},
                "sampleRateHertz": INTEGER,
                "audioChannelCount": INTEGER,
            },
        },
        "textNormalization": {
            "textNormalization": {"TEXT_NORMALIZATION_ENABLED", "TEXT_NORMALIZATION_DISABLED"},
            "profanityFilter": bool,
            "literatureText": bool,
            "phoneFormattingMode": {"PHONE_FORMATTING_MODE_DISABLED", "PHONE_FORMATTING_MODE_UNSPECIFIED"},
        },
        "languageRestriction": {"restrictionType": {"WHITELIST", "BLACKLIST"}, "languageCode": [str]},
        "audioProcessingType": {"FULL_DATA", "REAL_TIME"},
    },
    "recognitionClassifier": {"classifiers": [dict]},
    "speechAnalysis": dict,
    "speakerLabeling": {"speakerLabeling": {"SPEAKER_LABELING_ENABLED", "SPEAKER_LABELING_DISABLED"}},
    "summarization": dict,
}
_LANGUAGES: Final = frozenset(
    (
        *("auto", "de-DE", "en-US", "es-ES", "fi-FI", "fr-FR", "he-IL", "it-IT", "kk-KZ", "nl-NL"),
        *("pl-PL", "pt-PT", "pt-BR", "ru-RU", "sv-SE", "tr-TR", "uz-UZ"),
    )
)
_CODES: Final = {400: 3, 401: 16, 403: 7, 404: 5, 413: 3, 429: 8, 500: 13, 501: 12, 503: 14, 504: 4}


@define(kw_only=True)
class Manners:
    """How the service is just now; a test changes it.

    `polls`: answers "in progress" before the end, -1 for ever. `end`: "done", "empty" (done, with an empty
    response), "error" or "early_error" (told before it is done). `missing`: how often the result is not there
    yet. `error_form`: "nested" or "flat".
    """

    keys: list[str] = field(factory=lambda: ["a-key"])
    tokens: list[str] = field(factory=lambda: ["an-iam-token"])
    polls: int = 1
    end: str = "done"
    error: dict[str, Any] = field(factory=lambda: {"code": 13, "message": "internal error", "details": []})
    missing: int = 0
    refinement: bool = True
    scattered: bool = False
    chatty: bool = False
    error_form: str = "nested"
    longest_seconds: float = 4 * 3600.0
    largest_body: int = 60 * 2**20
    models: list[str] = field(factory=list)


@define
class Operation:
    """One recognition."""

    id: str
    audio: Audio
    polls: int
    missing: int
    deleted: bool = False


@define
class Yandex:
    """The service."""

    manners: Manners = field(factory=Manners)
    operations: dict[str, Operation] = field(factory=dict)

    def operation_of(self, request: Request) -> str:
        """Return what is asked for."""
        if request.path.startswith("/operations/"):
            return "cancel" if request.path.endswith(":cancel") else "check"
        return _ROUTES.get((request.method, request.path), "")

    def change(self, wishes: Mapping[str, Any]) -> None:
        """Take on another manner; `forget` drops all there is, as after three days."""
        for name, value in wishes.items():
            if name == "forget":
                self.operations.clear()
            elif name in fields_dict(Manners):
                setattr(self.manners, name, value)
            else:
                raise KeyError(name)

    def limited(self, retry_after: str | None) -> Reply:
        """Say that there were too many calls."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return self._refusal(429, "quota limit exceeded", headers).reply

    def serve(self, request: Request, call: Call) -> Reply:
        """Do what is asked."""
        self._let_in(request)
        match call.operation:
            case "start":
                return self._start(request, call)
            case "check" | "cancel":
                return self._check(request.path.removeprefix("/operations/").removesuffix(":cancel"), call)
            case "result":
                return self._result(_operation_id(request), call)
            case "delete":
                return self._delete(_operation_id(request), call)
            case _:
                raise self._refusal(404, "no such method")

    def _let_in(self, request: Request) -> None:
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if kind == "Api-Key" and secret in self.manners.keys:
            return
        if kind != "Bearer" or secret not in self.manners.tokens:
            raise self._refusal(401, f"The token is invalid or has expired: {secret}")
        if not request.headers.get("x-folder-id"):
            raise self._refusal(400, "folder id is required")

    def _start(self, request: Request, call: Call) -> Reply:
        if len(request.body) > self.manners.largest_body:
            raise self._refusal(413, f"request body is larger than {self.manners.largest_body} bytes")
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise self._refusal(400, "content type must be application/json")
        try:
            asked, audio = _asked(request.body)
        except ValueError as error:
            raise self._refusal(400, str(error)) from error
        if audio.seconds > self.manners.longest_seconds:
            raise self._refusal(400, f"audio is longer than {self.manners.longest_seconds:.0f} s")
        made = Operation(uuid4().hex, audio, self.manners.polls, self.manners.missing)
        self.operations[made.id] = made
        call.about = made.id
        call.noted = {
            "seconds": audio.seconds,
            "channels": audio.channels,
            "asked": asked,
            "folder": request.headers.get("x-folder-id", ""),
        }
        return as_json(_shown(made, done=False))

    def _check(self, operation_id: str, call: Call) -> Reply:
        call.about = operation_id
        found = self.operations.get(operation_id)
        if found is None:
            raise self._refusal(404, f"operation {operation_id} not found")
        if found.polls:
            found.polls -= 1 if found.polls > 0 else 0
            return as_json(_shown(found, done=False))
        match self.manners.end:
            case "error":
                return as_json({**_shown(found, done=True), "error": self.manners.error})
            case "early_error":
                return as_json({**_shown(found, done=False), "error": self.manners.error})
            case "empty":
                empty = {"@type": "type.googleapis.com/google.protobuf.Empty", "value": {}}
                return as_json({**_shown(found, done=True), "response": empty})
            case _:
                return as_json(_shown(found, done=True))

    def _result(self, operation_id: str, call: Call) -> Reply:
        call.about = operation_id
        found = self.operations.get(operation_id)
        if found is None or found.deleted or found.polls or found.missing:
            if found is not None and not found.polls:
                found.missing = max(0, found.missing - 1)
            raise self._refusal(404, f"recognition {operation_id} is not found")
        events = list(self._events(found.audio))
        indent = 1 if self.manners.scattered else None
        lines = [json.dumps({"result": event}, ensure_ascii=False, indent=indent) for event in events]
        return Reply(headers={"Content-Type": "application/json"}, body="\n".join([*lines, ""]).encode())

    def _delete(self, operation_id: str, call: Call) -> Reply:
        call.about = operation_id
        found = self.operations.get(operation_id)
        if found is None or found.deleted:
            raise self._refusal(404, f"recognition {operation_id} is not found")
        found.deleted = True
        return as_json({})

    def _events(self, audio: Audio) -> Iterator[dict[str, Any]]:
        indexes = dict.fromkeys(range(audio.channels), 0)
        for utterance in audio.utterances:
            channel, index = str(utterance.channel), indexes[utterance.channel]
            indexes[utterance.channel] += 1
            about = {
                "sessionUuid": {"uuid": "00-11", "userRequestId": ""},
                "audioCursors": {
                    "receivedDataMs": _ms(audio.seconds),
                    "resetTimeMs": "0",
                    "partialTimeMs": _ms(audio.seconds),
                    "finalTimeMs": _ms(utterance.end),
                    "finalIndex": str(index),
                    "eouTimeMs": "0",
                },
                "responseWallTimeMs": "900",
                "channelTag": channel,
            }
            if self.manners.chatty:
                yield {**about, "partial": _alternatives(utterance, utterance.words[0].text)}
            yield {**about, "final": _alternatives(utterance, utterance.text)}
            if self.manners.refinement:
                text = _alternatives(utterance, utterance.normalized)
                yield {**about, "finalRefinement": {"finalIndex": str(index), "normalizedText": text}}
            if self.manners.chatty:
                yield {**about, "statusCode": {"codeType": "WARNING", "message": "the audio is quiet"}}
                yield {**about, "classifierUpdate": {"windowType": "LAST_FINAL"}}
                yield {**about, "speakerAnalysis": {"speakerTag": channel, "windowType": "LAST_UTTERANCE"}}
            yield {**about, "eouUpdate": {"timeMs": _ms(utterance.end)}}
        yield {"statusCode": {"codeType": "CLOSED", "message": ""}, "channelTag": "0"}

    def _refusal(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> Refuses:
        code = _CODES[status]
        if self.manners.error_form == "flat":
            flat = {"code": code, "message": message, "details": []}
            return Refuses(as_json(flat, status, **(headers or {})))
        told = {
            "grpcCode": code,
            "httpCode": status,
            "message": message,
            "httpStatus": str(status),
            "details": [],
        }
        return Refuses(as_json({"error": told}, status, **(headers or {})))


def _operation_id(request: Request) -> str:
    return request.query.get("operation_id") or request.query.get("operationId", "")


def _asked(body: bytes) -> tuple[dict[str, Any], Audio]:
    """Return what is asked without the audio, and the audio; raises ValueError as the service refuses."""
    try:
        asked: Any = camel(json.loads(body))
    except ValueError as error:
        raise Unfit("the body is no JSON") from error
    check(asked, _SHAPE)
    if ("content" in asked) == ("uri" in asked):
        raise Unfit("one of uri and content must be set")
    if "uri" in asked:
        raise Unfit("the object cannot be read")
    try:
        data = base64.b64decode(asked.pop("content"), validate=True)
    except binascii.Error as error:
        raise Unfit("content is not base64") from error
    model = asked.get("recognitionModel", {})
    container = model.get("audioFormat", {}).get("containerAudio", {}).get("containerAudioType")
    if container is None:
        raise Unfit("audio_format is required")
    form, codec = _CONTAINERS[container]
    found_form, found_codec = container_of(data)
    if found_form != form or (codec and found_codec != codec):
        raise Unfit(f"audio is not {container}")
    codes = model.get("languageRestriction", {}).get("languageCode", [])
    if unknown := set(codes) - _LANGUAGES:
        raise Unfit(f"unsupported language code: {min(unknown)}")
    return asked, listen(data)


def _shown(operation: Operation, *, done: bool) -> dict[str, Any]:
    return {
        "id": operation.id,
        "description": "STT v3 async recognition",
        "createdAt": "2026-08-01T10:00:00Z",
        "createdBy": "a-user",
        "modifiedAt": "2026-08-01T10:00:00Z",
        "done": done,
        "metadata": None,
    }


def _alternatives(utterance: Utterance, text: str) -> dict[str, Any]:
    words = text.split()
    timed = [
        {"text": word, "startTimeMs": _ms(heard.start), "endTimeMs": _ms(heard.end)}
        for word, heard in zip(words, utterance.words, strict=False)
    ]
    alternative = {
        "words": timed,
        "text": text,
        "startTimeMs": _ms(utterance.start),
        "endTimeMs": _ms(utterance.end),
        "confidence": 0,
        "languages": [{"languageCode": "ru-RU", "probability": 1}],
    }
    return {"alternatives": [alternative], "channelTag": str(utterance.channel)}


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))
