"""What a request for a transcription wants: from the fields of its form, every fault told at once. No I/O."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus

from attrs import frozen

from daemon.intake.options import Options, read_options
from daemon.intake.problems import Problem

ALIAS = "whisper-1"  # what a client asks for that was never told of another
FORMS = ("json", "text", "srt", "verbose_json", "vtt")
STREAMED = ("json", "text")
GRANULARITIES = ("word", "segment")
_TRUTHS = {"true": True, "1": True, "false": False, "0": False, "": False}


@frozen(kw_only=True)
class Wish:
    """How the answer is to be given; `options` go with the recording."""

    form: str = "json"
    granularities: frozenset[str] = frozenset({"segment"})
    streamed: bool = False
    translated: bool = False
    options: Options


def read_wish(
    fields: Sequence[tuple[str, str]], filename: str, models: Iterable[str], *, translated: bool = False
) -> Wish:
    """Return the wish in a form's fields.

    Fields that change nothing here (`temperature`, `chunking_strategy` and what else such clients send) are
    passed over. Raises Problem for what would change the answer and cannot be given, SubmissionRefused for
    options that no submission may have.
    """
    given = {name.removesuffix("[]"): text for name, text in fields}
    _check_model(given.get("model", ""), tuple(models))
    form = given.get("response_format") or "json"
    granularities = frozenset(text for name, text in fields if name.startswith("timestamp_granularities"))
    streamed = _TRUTHS.get(given.get("stream", "").lower())
    faults = []
    if form not in FORMS:
        faults.append(f"response_format must be one of {', '.join(FORMS)}")
    if granularities - {*GRANULARITIES}:
        faults.append(f"timestamp_granularities must be of {', '.join(GRANULARITIES)}")
    if granularities and form != "verbose_json":
        faults.append("timestamp_granularities go with response_format verbose_json")
    if streamed is None:
        faults.append("stream must be true or false")
    if streamed and form not in STREAMED:
        faults.append(f"stream goes with response_format {' or '.join(STREAMED)}")
    if given.get("include"):
        faults.append("include asks for what is not known here")
    if faults:
        raise Problem(HTTPStatus.BAD_REQUEST, "invalid_value", f"{'; '.join(faults)}.")
    options = read_options(
        [
            ("filename", filename),
            ("language", given.get("language", "")),
            ("hotwords", given.get("prompt", "")),
            ("translate", "true" if translated else ""),
        ]
    )
    return Wish(
        form=form,
        granularities=granularities or frozenset({"segment"}),
        streamed=bool(streamed),
        translated=translated,
        options=options,
    )


def _check_model(asked: str, models: tuple[str, ...]) -> None:
    there = f"there are {', '.join(models)}"
    if not asked:
        raise Problem(HTTPStatus.BAD_REQUEST, "missing_required_parameter", f"model must be named; {there}.")
    if asked not in models:
        detail = f"There is no model {asked[:100]!a}; {there}."
        raise Problem(HTTPStatus.NOT_FOUND, "model_not_found", detail)
