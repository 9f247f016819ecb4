"""What an owner does to a record: edits what is the owner's, stops, lifts, deletes, undeletes."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any
from uuid import UUID

from attrs import evolve
from starlette.responses import JSONResponse, Response

from daemon.deeds import tell_deed
from daemon.intake.conditions import asked_edition
from daemon.intake.doors import Doors
from daemon.intake.json_body import JSON_KINDS, JSON_PROBLEMS, read_json
from daemon.intake.operations import Answer, Asked, Content, Operation, json_answer
from daemon.intake.options import MOST_LETTERS, MOST_TOPIC_LETTERS, MOST_TOPICS, read_options
from daemon.intake.polling import headers_of
from daemon.intake.problems import Problem, ProblemResponse, no_such_record
from daemon.intake.queries import Parameter
from daemon.intake.shapes import ShownRecord, shown_record
from storage import owner
from storage.account import Account
from storage.claim import NotFound
from storage.database import Database
from storage.owner import EDITED, Edit, Verdict
from storage.readiness import Readiness

LAST_EDITION = 2**31 - 1
MOST_NAME_LETTERS = 100
Verb = Callable[[Database, UUID, UUID | None, str], Awaitable[Verdict | NotFound]]


_TEXT = {"type": "string", "pattern": "^[^\\x00]*$"}
_GIVEN = {
    "type": "object",
    "description": "What an owner writes; what is left out stays as it is.",
    "properties": {
        "title": {**_TEXT, "maxLength": MOST_LETTERS["title"]},
        "description": {**_TEXT, "maxLength": MOST_LETTERS["description"]},
        "topics": {
            "type": "array",
            "items": {**_TEXT, "maxLength": MOST_TOPIC_LETTERS},
            "maxItems": MOST_TOPICS,
        },
        "left_name": {**_TEXT, "maxLength": MOST_NAME_LETTERS},
        "right_name": {**_TEXT, "maxLength": MOST_NAME_LETTERS},
        "edition": {
            "type": "integer",
            "minimum": 1,
            "maximum": LAST_EDITION,
            "description": "The edition this is meant for; If-Match says the same.",
        },
    },
    "additionalProperties": False,
}


async def edit_record(asked: Asked) -> Response:
    """Write what is given, on the edition that the owner saw and on no other."""
    given = await _given(asked)
    found = await asked.doors.polls.look(asked.record_id, asked.account, with_text=False)
    edit = edit_of(given, asked.request.headers.get("if-match"))
    if (in_the_way := await write_edit(asked.doors, asked.account, found, edit)) is not None:
        return _conflict(in_the_way)
    return await _shown(asked)


async def write_edit(doors: Doors, account: Account, found: Readiness, edit: Edit) -> Readiness | None:
    """Write an edit of a record that was found; return what is there instead, if another came first."""
    if edit.fields and not await owner.edit(doors.database, found.id, account.id, account.name, edit):
        found = await doors.polls.look(found.id, account, with_text=False)
        return None if _says_already(found, edit) else found
    if edit.edition is not None and not edit.fields and edit.edition != found.edition:
        return found
    return None


async def delete_record(asked: Asked) -> Response:
    """Make a record invisible at once, also while a stage works on it."""
    await perform(owner.delete, asked.doors.database, asked.account, asked.record_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def perform(verb: Verb, database: Database, account: Account, record_id: UUID) -> Verdict:
    """Do one of an owner's verbs, and tell it in the log; raises Problem for a record one may not see."""
    verdict = await verb(database, record_id, account.id, account.name)
    if isinstance(verdict, NotFound):
        raise no_such_record()
    if verdict is Verdict.DONE:
        tell_deed(verb, record_id, account.id, account.name)
    return verdict


def _verb(verb: Verb, refusals: Mapping[Verdict, tuple[str, str]]) -> Callable[[Asked], Awaitable[Response]]:
    async def do(asked: Asked) -> Response:
        verdict = await perform(verb, asked.doors.database, asked.account, asked.record_id)
        if verdict is not Verdict.DONE:
            code, detail = refusals[verdict]
            raise Problem(HTTPStatus.CONFLICT, code, detail)
        return await _shown(asked)

    return do


async def _shown(asked: Asked) -> Response:
    readiness = await asked.doors.polls.look(asked.record_id, asked.account)
    return JSONResponse(shown_record(readiness), headers=headers_of(readiness))


async def _given(asked: Asked) -> dict[str, Any]:
    """Return the members of the JSON in the request, each of the kind that it must be."""
    given = await read_json(asked.request)
    if faults := _faults(given):
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_edit", f"{'; '.join(faults[:10])}.")
    return given


def _faults(given: Mapping[str, Any]) -> list[str]:
    faults = []
    for name, value in given.items():
        match name:
            case "title" | "description" | "left_name" | "right_name":
                good = isinstance(value, str)
            case "topics":
                good = isinstance(value, list) and all(isinstance(each, str) for each in value)
            case "edition":
                good = type(value) is int and 1 <= value <= LAST_EDITION
            case _:
                faults.append(f"{name[:100]!a} cannot be edited ({', '.join(EDITED)} can, beside edition)")
                continue
        if not good:
            faults.append(f"{name} is of the wrong kind")
    return faults


def edit_of(given: Mapping[str, Any], if_match: str | None) -> Edit:
    """Return what is to be written, each member of its kind; raises Problem for what may not be."""
    texts = [(name, given[name]) for name in ("title", "description") if name in given]
    # The same limits as at the submission; raises SubmissionRefused with every fault.
    options = read_options([*texts, *(("topics", topic) for topic in given.get("topics", ()))])
    edit = Edit(
        title=options.title if "title" in given else None,
        description=options.description if "description" in given else None,
        topics=options.topics if "topics" in given else None,
        left_name=_name(given, "left_name"),
        right_name=_name(given, "right_name"),
    )
    if if_match is not None:
        edition = asked_edition(if_match)
        if "edition" in given and edition is not None and edition != given["edition"]:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "invalid_edit",
                "If-Match and edition name different editions; send one of them.",
            )
        return evolve(edit, edition=given.get("edition", edition))
    if "edition" in given:
        return evolve(edit, edition=given["edition"])
    raise Problem(
        HTTPStatus.PRECONDITION_REQUIRED,
        "edition_required",
        "Say which edition the edit is meant for: `edition`, or If-Match with the record's ETag (* for any).",
    )


def _name(given: Mapping[str, Any], name: str) -> str | None:
    """Return the name of whoever is on one side; raises Problem for one that cannot be kept."""
    text = given.get(name)
    if text is not None and (len(text) > MOST_NAME_LETTERS or not (text.isprintable() or not text)):
        fault = f"{name} may have {MOST_NAME_LETTERS} printable letters"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_edit", f"{fault}.")
    return None if text is None else text.strip()


def _says_already(found: Readiness, edit: Edit) -> bool:
    """Tell whether the edit is there: whoever lost the answer to one sends it again."""
    return all(getattr(found, name) == getattr(edit, name) for name in edit.fields)


def _conflict(found: Readiness) -> Response:
    current = {
        "title": found.title,
        "description": found.description,
        "topics": found.topics,
        "left_name": found.left_name,
        "right_name": found.right_name,
        "edition": found.edition,
    }
    detail = f"The record is at edition {found.edition} by now; look at what is there and edit that."
    return ProblemResponse(Problem(HTTPStatus.CONFLICT, "edition_conflict", detail), current=current)


_ETAG = {"ETag": "Of the record as it is now."}
_SHOWN = {200: json_answer("The record as it is now.", ShownRecord, _ETAG)}

OPERATIONS = (
    Operation(
        method="PATCH",
        path="/v1/records/{id}",
        name="editRecord",
        says="Write title, description, topics or the names of both sides, on the edition one saw.",
        handler=edit_record,
        parameters=(
            Parameter(
                name="If-Match",
                place="header",
                says="An ETag of the record, of which the edition before the dot counts; * for any.",
                schema={"type": "string"},
            ),
        ),
        body=tuple(Content(media=media, shape=_GIVEN) for media in JSON_KINDS),
        answers=_SHOWN,
        problems=(
            (404, "not_found"),
            (409, "edition_conflict"),
            (422, "invalid_edit"),
            (422, "invalid_options"),
            (428, "edition_required"),
            *JSON_PROBLEMS,
        ),
    ),
    Operation(
        method="POST",
        path="/v1/records/{id}/stop",
        name="stopRecord",
        says="Take a record out of work until it is lifted, also while a stage works on it.",
        handler=_verb(
            owner.stop,
            {
                Verdict.ALREADY_STOPPED: ("already_stopped", "The record is stopped already."),
                Verdict.PAST_STOPPING: (
                    "past_stopping",
                    "The record is done; there is nothing left to stop.",
                ),
            },
        ),
        answers=_SHOWN,
        problems=((404, "not_found"), (409, "already_stopped"), (409, "past_stopping")),
    ),
    Operation(
        method="POST",
        path="/v1/records/{id}/lift",
        name="liftRecord",
        says="Lift the stop flag: the record is ready for work again, its failures forgotten.",
        handler=_verb(
            owner.lift,
            {Verdict.NOT_STOPPED: ("not_stopped", "The record is not stopped; there is nothing to lift.")},
        ),
        answers=_SHOWN,
        problems=((404, "not_found"), (409, "not_stopped")),
    ),
    Operation(
        method="DELETE",
        path="/v1/records/{id}",
        name="deleteRecord",
        says="Delete a record: invisible at once; it can be had back for seven days.",
        handler=delete_record,
        answers={204: Answer(says="It is deleted.")},
        problems=((404, "not_found"),),
    ),
    Operation(
        method="POST",
        path="/v1/records/{id}/undelete",
        name="undeleteRecord",
        says="Have a deleted record back: it goes on where it was.",
        handler=_verb(
            owner.undelete,
            {Verdict.NOT_DELETED: ("not_deleted", "The record is not deleted.")},
        ),
        answers=_SHOWN,
        problems=((404, "not_found"), (409, "not_deleted")),
    ),
)
