"""The catalogue of events and the code that says them agree, both ways."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.catalogue import STOPPED, catalogue, message_id
from daemon.happenings import EVENTS
from daemon.remedies import REMEDIES, STOP_REMEDIES
from storage.record import StopCode

ROOT = Path(__file__).parents[2]
SPEAKERS = {"log", "logger", "_log"}
WAYS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def sources() -> list[Path]:
    """Every module of ours."""
    return sorted(file for room in ("daemon", "storage", "stages") for file in (ROOT / room).rglob("*.py"))


def said_events(source: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield line, way and event of every log call; None for an event that cannot be read from the code."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=speaker, attr=way), args=args) if way in WAYS:
                if not _speaks(speaker):
                    continue
                words = args[1:] if way == "log" else args
                for event in _events(words[0]) if words else [None]:
                    yield node.lineno, way, event


def _speaks(speaker: ast.expr) -> bool:
    match speaker:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in SPEAKERS
        case ast.Call(func=ast.Attribute(attr=("get_logger" | "bind" | "unbind" | "new"))):
            return True
        case _:
            return False


def _events(word: ast.expr) -> list[str | None]:
    match word:
        case ast.Constant(value=str(event)):
            return [event]
        case ast.IfExp(body=yes, orelse=no):
            return [*_events(yes), *_events(no)]
        case _:
            return [None]


def test_every_event_is_in_the_catalogue() -> None:
    """Nothing is said that an operator cannot look up."""
    unknown = [
        f"{file.relative_to(ROOT)}:{line}: {event}"
        for file in sources()
        for line, _, event in said_events(file.read_text("utf-8"))
        if event not in EVENTS
    ]
    assert not unknown


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_of_the_catalogue_is_said_somewhere(event: str) -> None:
    """Nothing is explained to an operator that can never happen."""
    catalogue = ROOT / "daemon" / "happenings.py"
    assert any(f'"{event}"' in file.read_text("utf-8") for file in sources() if file != catalogue)


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_is_a_dotted_noun_and_what_befell_it(event: str) -> None:
    """One form for all, and a meaning that is one short line."""
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", event)
    assert 10 < len(EVENTS[event]) <= 100
    assert EVENTS[event][0].islower()
    assert not EVENTS[event].endswith(".")


def manual() -> str:
    """Return the operators' manual."""
    return (ROOT / "docs" / "operators.md").read_text("utf-8")


def documented() -> dict[str, str]:
    """Return the events of docs/operators.md with the level told there."""
    return dict(re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \| ([a-z]+) \|", manual(), re.MULTILINE))


def test_an_event_that_is_no_good_news_has_its_remedy() -> None:
    """Whoever reads a warning or an error is told what to do, and nobody is told what to do about others."""
    told = {event for event, level in documented().items() if level in ("warning", "error")}
    assert set(REMEDIES) == told
    assert set(STOP_REMEDIES) == set(StopCode)


@pytest.mark.parametrize("event", EVENTS)
def test_the_operators_are_told_what_it_means_and_what_to_do(event: str) -> None:
    """In the words of the catalogue, so that manual and journal cannot contradict each other."""
    meaning = f"{EVENTS[event][0].upper()}{EVENTS[event][1:]}. {REMEDIES.get(event, '')}".rstrip()
    assert re.search(rf"^\| `{event}` \| [a-z]+ \| {re.escape(meaning)} \|$", manual(), re.MULTILINE)


@pytest.mark.parametrize("code", StopCode)
def test_the_operators_are_told_of_every_stop(code: StopCode) -> None:
    """Each code has its remedy."""
    assert f"| `{code}` | {STOP_REMEDIES[code]} |\n" in manual()


def test_the_journals_catalog_is_what_we_would_write() -> None:
    """systemd/rubezh.catalog is made by `python -m daemon.catalogue`; make it anew after a change."""
    assert (ROOT / "systemd" / "rubezh.catalog").read_text("utf-8") == catalogue()


def test_each_kind_of_event_has_an_id_of_its_own_for_good() -> None:
    """Ids are 128 bits; a stop has one for each code. They are looked for in journals written long ago."""
    ids = [message_id(event) for event in EVENTS] + [message_id(STOPPED, code) for code in StopCode]
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)
    assert len(set(ids)) == len(ids)
    assert message_id("service.started") == "735caa20c4475c02bc20c2536af34da4"
    assert message_id(STOPPED, "overdue") == "aedbf3c4bd6f54d5944d5998f669f330"


def test_the_catalog_speaks_of_the_entrys_own_record() -> None:
    """The command that lifts the stop can be copied as it stands."""
    ours = catalogue().partition(f"-- {message_id(STOPPED, 'attempts_exhausted')}")[2].partition("\n-- ")[0]
    assert "rubezh records lift @RUBEZH_RECORD@." in ours
    assert "What to do:" in ours
    assert not re.search(r"\bID\b", catalogue())


def test_the_operators_are_told_about_every_event() -> None:
    """docs/operators.md lists each event, and none that there is not."""
    assert set(documented()) == set(EVENTS)


def test_the_operators_are_told_the_level() -> None:
    """Each event is said at the level that docs/operators.md has for it, and maybe at another."""
    levels: dict[str | None, set[str]] = defaultdict(set)
    for file in sources():
        for _, way, event in said_events(file.read_text("utf-8")):
            levels[event].add({"exception": "error", "log": "warning"}.get(way, way))
    wrong = {
        event: level for event, level in documented().items() if levels[event] and level not in levels[event]
    }
    assert not wrong


@pytest.mark.parametrize(
    ("source", "events"),
    [
        ('log.info("a.b", x=1)', ["a.b"]),
        ('self.log.warning("a.b")', ["a.b"]),
        ('structlog.get_logger().log(20, "a.b")', ["a.b"]),
        ('log.bind(x=1).error("a.b")', ["a.b"]),
        ('log.error("a.b" if bad else "c.d")', ["a.b", "c.d"]),
        ("log.info(event)", [None]),
        ('log.info(f"a.{b}")', [None]),
        ("log.exception()", [None]),
        ('math.log("a.b")', []),
    ],
)
def test_the_reader_of_log_calls_sees_them_all(source: str, events: list[str | None]) -> None:
    """The two checks above rest on this."""
    assert [event for _, _, event in said_events(source)] == events
