"""A house with everything in it that a page can show, and each page of the panel by its name."""

from collections.abc import Callable, Mapping
from functools import partial

from attrs import frozen

from storage.database import Database
from storage.sessions import make_link
from tests.making import put
from tests.panel.house import House, Person, a_tone

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'`${7*7}{{7*7}}"
TURNED = f"{HOSTILE} \N{RIGHT-TO-LEFT OVERRIDE}txet"
LONG = "A name of a recording that somebody was very fond of and could not stop writing, " * 3


@frozen
class Furnished:
    """What was put in: records in each state, of somebody who is the service owner, too."""

    anna: Person
    done: str
    stopped: str
    working: str
    waiting: str
    link: str


def furnish(house: House) -> Furnished:
    """Put in records that are done, stopped, at work and waiting, with hostile, long and no names."""
    anna = house.person(f"anna {HOSTILE}", is_owner=True)
    done = house.submit(
        anna,
        a_tone(4),
        filename="meeting.wav",
        title="The meeting about the milestones",
        topics="planning",
        description="What was said, and by whom.",
    )
    stopped = house.submit(anna, a_tone(2), filename="stubborn.wav", title=TURNED, topics=HOSTILE)
    plain = house.submit(anna, a_tone(1), filename=f"{HOSTILE}.wav", title=LONG)
    for record_id in (done, stopped, plain):
        house.finished(anna, record_id)
    working = house.submit(anna, a_tone(1), filename="lecture.m4a", title="A lecture of four hours")
    waiting = house.submit(anna, a_tone(1), filename="interview.ogg")
    for record_id in (working, waiting):
        house.finished(anna, record_id)
    link: str = house.do(partial(_arranged, anna=anna, working=working, waiting=waiting))
    return Furnished(anna, done, stopped, working, waiting, link)


async def _arranged(database: Database, *, anna: Person, working: str, waiting: str) -> str:
    # Held by nobody here, for as long as the pictures are taken: the work itself is shown elsewhere.
    await put(
        database,
        "UPDATE records SET milestone = 'transcribe', lane = 'elsewhere', decoded_seconds = 14400, "
        "recognised_seconds = 2535, milestone_seconds = 500, claim_token = gen_random_uuid(), "
        "claimed_at = clock_timestamp(), claimed_by = 'another machine:1:x', lease_seconds = 86400, "
        "lease_until = clock_timestamp() + interval '1 day', wake_at = clock_timestamp() + interval '1 day' "
        "WHERE id = %s",
        working,
    )
    await put(
        database,
        "UPDATE records SET milestone = 'converted', lane = 'elsewhere', recognised_seconds = 0 "
        "WHERE id = %s",
        waiting,
    )
    return await make_link(database, anna.id, 3600)


PAGES: Mapping[str, Callable[[Furnished], str]] = {
    "sign-in": lambda _: "/sign-in",
    "link": lambda there: f"/sign-in/{there.link}",
    "records": lambda _: "/records",
    "found": lambda _: "/records?q=milestones",
    "none": lambda _: "/records?q=nowhere&show=done",
    "deleted": lambda there: f"/records?show=stopped&deleted={there.done}",
    "record": lambda there: f"/records/{there.done}",
    "record-stopped": lambda there: f"/records/{there.stopped}",
    "record-line": lambda there: f"/records/{there.done}/segments/1.0",
    "account": lambda _: "/account",
    "service": lambda _: "/service",
    "service-stopped": lambda _: "/service?code=recogniser_refused",
    "not-found": lambda _: "/nowhere",
}
"""Where each page is. A new page of the panel is added here: it is then looked at in every way below."""

FOR_STRANGERS = ("sign-in", "link")
