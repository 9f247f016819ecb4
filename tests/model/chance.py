"""What a seed decides of a simulated run: who takes part, what goes wrong, when people interfere."""

import random
from typing import Final

from attrs import frozen

from tests.model.fake_store import Fate

CALL_SECONDS: Final = 5.0
LANES: Final = ("convert", "whisper")
LATEST_SECONDS: Final = 15.0  # after its caller gave up, a call may still arrive


@frozen(kw_only=True)
class Deed:
    """What is done to the world at a moment: `what` names it, `on` the machine or record, by a number."""

    at: float
    what: str
    on: int
    seconds: float = 0.0


@frozen(kw_only=True)
class Window:
    """A time in which something is away."""

    since: float
    until: float

    def has(self, moment: float) -> bool:
        """True for a moment in it."""
        return self.since <= moment < self.until


@frozen(kw_only=True)
class Plan:
    """The whole run, but for what is drawn while it goes on; seconds from its start."""

    machines: int
    workers: int
    slots: dict[str, int]
    chaos_seconds: float
    arrivals: tuple[float, ...]
    deeds: tuple[Deed, ...]
    database_away: tuple[Window, ...]
    lane_away: dict[str, tuple[Window, ...]]
    slow: float
    unsent: float
    unheard: float
    late: float
    bell_deaf: float
    behaviours: dict[str, float]

    @property
    def set_back_seconds(self) -> float:
        """How far the database's clock is set back in all."""
        return sum(-deed.seconds for deed in self.deeds if deed.what == "jump" and deed.seconds < 0)

    @property
    def set_forward(self) -> bool:
        """True when a lease may end before its time."""
        return any(deed.what == "jump" and deed.seconds > 0 for deed in self.deeds)


MACHINE_DEEDS: Final = {"kill": 3.0, "stop": 3.0, "hurried stop": 1.0}
PEOPLE_DEEDS: Final = {
    "stop": 2.0,
    "lift": 3.0,
    "stop and lift": 3.0,
    "delete": 1.0,
    "undelete": 2.0,
    "delete and undelete": 2.0,
    "stop while settling": 2.0,
}
BEHAVIOURS: Final = {
    "reach": 10.0,
    "defer": 4.0,
    "defer for long": 1.0,
    "fail": 2.0,
    "hang": 1.0,
    "be stubborn": 1.5,
    "be unclean": 2.0,
    "find it hopeless": 0.3,
    "find what cannot be stored": 1.0,
    "take the process down": 0.5,
    "exit": 0.3,
}


def a_plan(chance: random.Random) -> Plan:
    """Draw a plan; each kind of trouble is absent from some runs, so that one may not hide another."""
    chaos = chance.uniform(60.0, 140.0)

    def some(most: int) -> range:
        return range(chance.randint(0, most))

    def window(longest: float) -> Window:
        since = chance.uniform(0.0, chaos)
        return Window(since=since, until=since + chance.uniform(2.0, longest))

    def rate(most: float) -> float:
        return chance.choice((0.0, 0.3, 1.0)) * most

    machines = chance.choice((1, 2, 2, 3))
    deeds = [_draw(chance, MACHINE_DEEDS, machines, chaos) for _ in some(4)]
    deeds += [
        _draw(chance, {f"person: {what}": n for what, n in PEOPLE_DEEDS.items()}, 6, chaos) for _ in some(7)
    ]
    if chance.random() < 0.4:
        deeds += [
            Deed(at=chance.uniform(0.0, chaos), what="jump", on=0, seconds=chance.uniform(-60.0, 80.0))
            for _ in range(chance.randint(1, 2))
        ]
    wild = chance.choice((0.0, 0.3, 1.0, 3.0))
    return Plan(
        machines=machines,
        workers=chance.randint(1, 3),
        slots={"convert": chance.randint(1, 2), "whisper": chance.randint(1, 2)},
        chaos_seconds=chaos,
        arrivals=tuple(sorted(chance.uniform(0.0, chaos / 2) for _ in range(chance.randint(2, 5)))),
        deeds=tuple(sorted(deeds, key=lambda deed: deed.at)),
        database_away=tuple(window(100.0) for _ in some(1)),
        lane_away={lane: tuple(window(60.0) for _ in some(1)) for lane in LANES},
        slow=rate(0.3),
        unsent=rate(0.1),
        unheard=rate(0.15),
        late=rate(0.08),
        bell_deaf=rate(1.0),
        behaviours={what: odds if what == "reach" else odds * wild for what, odds in BEHAVIOURS.items()},
    )


def _draw(chance: random.Random, odds: dict[str, float], among: int, until: float) -> Deed:
    [what] = chance.choices(list(odds), list(odds.values()))
    return Deed(at=chance.uniform(0.0, until), what=what, on=chance.randrange(among))


def a_fate(chance: random.Random, plan: Plan, now: float) -> Fate:
    """Draw what becomes of one call."""
    if any(window.has(now) for window in plan.database_away):
        return Fate(before=chance.choice((0.0, 0.0, CALL_SECONDS)), arrives=False)
    before = chance.uniform(0.0, CALL_SECONDS - 1) if chance.random() < plan.slow else 0.0
    luck = chance.random()
    if luck < plan.unsent:
        return Fate(before=before, arrives=False)
    luck -= plan.unsent
    if luck < plan.unheard:
        return Fate(before=before, after=chance.uniform(0.0, 1.0), answered=False, past_cancel=True)
    luck -= plan.unheard
    if luck < plan.late:
        return Fate(before=CALL_SECONDS, late=chance.uniform(0.0, LATEST_SECONDS), past_cancel=True)
    after = chance.uniform(0.0, CALL_SECONDS - before) if before else 0.0
    return Fate(before=before, after=after, past_cancel=chance.random() < 0.5)
