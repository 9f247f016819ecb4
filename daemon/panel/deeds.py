"""What a person does to records from the panel: to one, or to as many as were selected."""

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlencode
from uuid import UUID

import structlog
from starlette.responses import Response

from daemon.intake.doors import asked_record, open_doors
from daemon.intake.editing import Verb, perform
from daemon.intake.problems import Problem, no_such_record
from daemon.intake.receiving import receive
from daemon.intake.submitting import take_in
from daemon.panel.page import Page, Visit
from daemon.panel.records import RECORDS, ids_of
from daemon.panel.visiting import go_to, ours
from storage import owner
from storage.owner import Verdict

log = structlog.get_logger()

_VERBS: dict[str, Verb] = {
    "lift": owner.lift,
    "stop": owner.stop,
    "delete": owner.delete,
    "undelete": owner.undelete,
}
_SAID = {"lift": ("lifted", "unlifted"), "stop": ("halted", "unhalted"), "undelete": ("restored", "restored")}


async def do_to_many(visit: Visit) -> Response:
    """Do one thing to every record that was selected, and say how many it was done to."""
    name = visit.form.one("do")
    if name not in _VERBS:
        raise no_such_record()
    ids = _chosen(visit)
    back = ours(visit.form.one("back"), RECORDS)
    if not ids:
        return go_to(_with(back, did="unchosen"))
    done = await _done(visit, _VERBS[name], ids)
    if name == "delete":
        return go_to(_with(back, deleted=",".join(map(str, done))))
    some, none = _SAID[name]
    return go_to(_with(back, did=some if done else none, number=str(len(done))))


async def do_to_one(visit: Visit) -> Response:
    """Do one thing to one record: back to it, or to the list when it is gone."""
    name, record_id = visit.request.path_params["verb"], asked_record(visit.request)
    if name not in _VERBS:
        raise no_such_record()
    await perform(_VERBS[name], visit.doors.database, visit.account, record_id)
    if name == "delete":
        return go_to(f"{RECORDS}?deleted={record_id}")
    return go_to(ours(visit.form.one("back"), f"{RECORDS}/{record_id}"))


async def take_file(visit: Visit) -> Response:
    """Take a recording from a form, for browsers that run no scripts; others send it by parts."""
    doors = open_doors(visit.request)
    bring = partial(receive, visit.request, largest=doors.settings.largest_bytes)
    record_id = await take_in(doors, visit.account, bring)
    return go_to(f"{RECORDS}/{record_id}")


async def _done(visit: Visit, verb: Verb, ids: Sequence[UUID]) -> Sequence[UUID]:
    done = []
    for record_id in ids:
        try:
            if await perform(verb, visit.doors.database, visit.account, record_id) is Verdict.DONE:
                done.append(record_id)
        except Problem as gone:
            # The others are not kept waiting for one that is gone meanwhile, or never was.
            log.debug("record.unseen", record=record_id, cause=gone.code)
    return done


def _chosen(visit: Visit) -> Sequence[UUID]:
    """Return the records that were selected."""
    return ids_of(visit.form.all("id"))


def _with(path: str, **facts: str) -> str:
    """Return a path of ours with what was done said in it, instead of what was said before."""
    place, _, query = path.partition("?")
    kept = [
        part for part in query.split("&") if part.partition("=")[0] not in ("", "did", "number", "deleted")
    ]
    return f"{place}?{'&'.join([*kept, urlencode(facts)])}"


PAGES = (
    Page(method="POST", path=RECORDS, handler=do_to_many),
    Page(method="POST", path=f"{RECORDS}/send", handler=take_file, reads_itself=True),
    Page(method="POST", path=RECORDS + "/{id}/{verb}", handler=do_to_one),
)
