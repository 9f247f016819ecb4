"""What the log promises: fields in the journal, lines for people, no secret, and never a wait."""

import fcntl
import io
import json
import logging
import os
import pty
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from daemon.catalogue import message_id
from daemon.journal import as_journal_entry, configure, keep_pushing, say_last_words, say_to
from daemon.journald import JournalSocket, encode, is_stderr_the_journal
from daemon.outlet import MOST_ENTRIES, Answer
from daemon.wording import HIDDEN, hide_secrets, word_facts

log = structlog.get_logger()
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    """Leave logging as it was for the other tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


class Journald:
    """The receiving end of the protocol, on a socket of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(5)
        self.socket.bind(str(path))

    def next(self) -> dict[str, str]:
        """Return the next entry's fields, whichever way it came."""
        data, rights, _, _ = self.socket.recvmsg(2**20, socket.CMSG_SPACE(4))
        if rights:
            (descriptor,) = struct.unpack("i", rights[0][2])
            assert fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) == 0b1111, "journald takes sealed files alone"
            with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
                file.seek(0)
                data = file.read()
        return decode(data)

    def waiting(self) -> list[dict[str, str]]:
        """Return every entry that has come."""
        self.socket.setblocking(False)  # noqa: FBT003 - it takes its argument by place only
        entries = []
        try:
            while True:
                entries.append(self.next())
        except BlockingIOError:
            return entries


def decode(data: bytes) -> dict[str, str]:
    """Read an entry as journald does."""
    fields = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            (length,) = struct.unpack("<Q", data[:8])
            value, data = data[8 : 8 + length], data[8 + length + 1 :]
        fields[name.decode()] = value.decode()
    return fields


@pytest.fixture
def journald(tmp_path: Path) -> Iterator[Journald]:
    """A journald to talk to, with our log already talking to it."""
    end = Journald(tmp_path / "socket")
    sink = JournalSocket(end.path)
    say_to(sink, as_journal_entry, lambda _logger, _method, entry: entry, "debug")
    yield end
    sink.close()
    end.socket.close()


@pytest.fixture
def lines() -> io.TextIOWrapper:
    """A stream that is no terminal."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def said(stream: io.TextIOWrapper) -> str:
    """Return what was written to the stream."""
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def fail(error: Exception) -> None:
    """Raise the error, from a line of its own."""
    raise error


# The journal


def test_each_fact_is_a_field_and_the_message_is_for_people(journald: Journald) -> None:
    """One can ask the journal for everything about one record, and read what it answers."""
    with structlog.contextvars.bound_contextvars(record="r1", stage="convert", milestone="created"):
        log.warning("record.failed", reason="no such file", failures=2)
    assert journald.next() == {
        "MESSAGE": "record.failed record=r1 stage=convert milestone=created reason='no such file' failures=2",
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "rubezh",
        "MESSAGE_ID": message_id("record.failed"),
        "RUBEZH_EVENT": "record.failed",
        "RUBEZH_RECORD": "r1",
        "RUBEZH_STAGE": "convert",
        "RUBEZH_MILESTONE": "created",
        "RUBEZH_REASON": "no such file",
        "RUBEZH_FAILURES": "2",
    }


@pytest.mark.parametrize(("level", "priority"), [("debug", 7), ("info", 6), ("warning", 4), ("error", 3)])
def test_levels_are_the_journals_priorities(journald: Journald, level: str, priority: int) -> None:
    """`journalctl -p` sorts our entries as it sorts everybody's."""
    getattr(log, level)("service.started")
    assert journald.next()["PRIORITY"] == str(priority)


@given(st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,63}", fullmatch=True), st.text()))
def test_any_text_survives_the_protocol(fields: dict[str, str]) -> None:
    """Line ends, equal signs and every letter of Unicode arrive as sent; half letters are escaped."""
    sent = {name: text.encode("utf-8", "backslashreplace").decode() for name, text in fields.items()}
    assert decode(encode(fields)) == sent


@pytest.mark.parametrize("name", ["lower", "_FORGED", "1ST", "A" * 65, "WITH SPACE", "A=B", ""])
def test_a_field_that_journald_would_drop_is_refused(name: str) -> None:
    """Nothing gets lost on the way for the look of its name."""
    with pytest.raises(ValueError, match="journal field"):
        encode({name: "x"})


def test_an_entry_too_big_for_a_datagram_arrives_whole(journald: Journald) -> None:
    """A recogniser's own words may be long."""
    log.error("record.stopped", reason="x" * 3_000_000)
    assert journald.next()["RUBEZH_REASON"] == "x" * 3_000_000


def test_a_stuck_journald_never_stops_us_and_what_it_missed_is_counted(journald: Journald) -> None:
    """With nobody reading, every call returns; what was kept comes in order, then the loss, as one entry."""
    sent = MOST_ENTRIES + 2000
    for number in range(sent):
        log.info("record.reached", number=number)
    received = journald.waiting()
    while not any(entry["RUBEZH_EVENT"] == "journal.dropped" for entry in received):
        log.info("service.stopped")
        sent += 1
        received += journald.waiting()
    events = [entry["RUBEZH_EVENT"] for entry in received]
    reached = [entry["RUBEZH_NUMBER"] for entry in received if "RUBEZH_NUMBER" in entry]
    report = received[events.index("journal.dropped")]
    assert reached == [str(number) for number in range(len(reached))], "in order"
    assert MOST_ENTRIES < len(reached) < sent
    assert report["PRIORITY"] == "4"
    assert events[len(reached)] == "journal.dropped", "it stands where the loss is"
    log.info("service.stopped")
    told_later = [entry["RUBEZH_EVENT"] for entry in journald.waiting()]
    assert told_later[-1] == "service.stopped"
    assert "journal.dropped" not in told_later, "the loss is told once"
    missed = int(report["RUBEZH_ENTRIES"])
    assert len(received) - 1 + missed + len(told_later) == sent + 1, "nothing is missing untold"


async def test_a_loss_is_told_though_nothing_more_is_said(
    journald: Journald, autojump_clock: trio.testing.MockClock
) -> None:
    """The service looks by itself whether there is room again."""
    del autojump_clock
    for _ in range(MOST_ENTRIES + 2000):
        log.info("record.reached")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_pushing)
        received: list[dict[str, str]] = []
        while not received or received[-1]["RUBEZH_EVENT"] != "journal.dropped":
            received += journald.waiting()
            await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert len(received) - 1 + int(received[-1]["RUBEZH_ENTRIES"]) == MOST_ENTRIES + 2000


def test_the_last_words_wait_a_moment_for_room_and_no_longer(journald: Journald) -> None:
    """The end of the process is not held up by a journald that does not read."""
    for _ in range(MOST_ENTRIES + 2000):
        log.info("record.reached")
    began = time.monotonic()
    say_last_words(0.2)
    assert 0.2 <= time.monotonic() - began < 10
    journald.waiting()
    say_last_words(0.01)
    assert journald.waiting()


def test_a_journald_that_is_restarted_is_found_again(journald: Journald) -> None:
    """What is said while it is away arrives on the new socket: nothing is lost."""
    journald.socket.close()
    journald.path.unlink()
    log.info("record.reached")
    again = Journald(journald.path)
    log.info("service.stopped")
    assert [entry["RUBEZH_EVENT"] for entry in again.waiting()] == ["record.reached", "service.stopped"]
    again.socket.close()


def test_an_entry_that_nobody_will_ever_take_holds_no_other_up(journald: Journald) -> None:
    """It is dropped at once and told, and those behind it go on."""
    sink = JournalSocket(journald.path)
    sink.close()
    assert sink.send(b"MESSAGE=x\n") is Answer.NEVER


def test_the_journal_is_known_by_its_stream() -> None:
    """Only the very descriptor that systemd named is taken for the journal."""
    reading, writing = os.pipe()
    found = os.fstat(writing)
    named = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
    assert is_stderr_the_journal(named, writing)
    assert not is_stderr_the_journal({"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino + 1}"}, writing)
    assert not is_stderr_the_journal({}, writing)
    os.close(reading)
    os.close(writing)
    assert not is_stderr_the_journal(named, writing), "a closed descriptor leads nowhere"


WITH_A_REAL_JOURNALD = r"""
mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/log; mkdir -p /run/systemd/journal /run/log/journal
mount -t tmpfs tmpfs /etc/systemd
printf '[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\n' >/etc/systemd/journald.conf
/lib/systemd/systemd-journald & daemon=$!
until [ -S /run/systemd/journal/socket ]; do sleep .01; done
"$PYTHON" -c '
import structlog
from daemon.journal import configure
configure("journal", "info")
log = structlog.get_logger()
log.warning("record.failed", record="r1", reason="two\nlines")
log.info("record.stopped", record="r1", reason="x" * 2_000_000)
log.debug("record.claimed", record="r1")
'
# journald is asked to write down everything; its answer is a file of the second that it did.
kill -RTMIN+1 $daemon; until [ -e /run/systemd/journal/synced ]; do sleep .01; done
journalctl --output=json --all RUBEZH_RECORD=r1
kill $daemon
"""


def test_a_real_journald_takes_our_entries() -> None:
    """Fields, line ends, big entries and the calling line arrive as the receiving end above has them."""
    journald = Path("/lib/systemd/systemd-journald")
    if os.geteuid() != 0 or not journald.exists() or not shutil.which("unshare"):
        pytest.skip("needs root, unshare and systemd-journald")
    unshare = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "--propagation=private",
    ]
    probe = subprocess.run([*unshare, "true"], check=False, capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(f"no private namespaces here: {probe.stderr.strip()}")
    done = subprocess.run(
        [*unshare, "sh", "-euc", WITH_A_REAL_JOURNALD],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={"PATH": os.defpath, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
    )
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert (first["RUBEZH_EVENT"], first["RUBEZH_REASON"]) == ("record.failed", "two\nlines")
    assert first["MESSAGE"] == r"record.failed record=r1 reason='two\nlines'"
    assert (first["PRIORITY"], first["SYSLOG_IDENTIFIER"]) == ("4", "rubezh")
    assert (first["CODE_FILE"], first["CODE_LINE"], first["CODE_FUNC"]) == ("<string>", "6", "<module>")
    assert second["RUBEZH_REASON"] == "x" * 2_000_000


# Lines


def test_an_entry_is_one_line_without_colours_where_no_terminal_is(lines: io.TextIOWrapper) -> None:
    """Logs in a file or a pipe can be searched line by line, whatever a sender put into a file name."""
    configure("console", "info", stream=lines)
    log.info("submission.accepted", filename="a\n2026-01-01 error   \x1b[31mforged\u009b2J.flac")
    (line,) = said(lines).splitlines()
    assert line.isprintable()
    assert line.endswith(r"filename='a\n2026-01-01 error   \x1b[31mforged\x9b2J.flac'")


def test_keys_stand_in_a_constant_order(lines: io.TextIOWrapper) -> None:
    """The record comes first, wherever it was named."""
    configure("console", "info", stream=lines)
    log.info("record.reached", seconds=1.23456, record="r1", title="Со словами")
    assert said(lines).rstrip().endswith("record.reached       record=r1 seconds=1.235 title='Со словами'")


def test_a_terminal_gets_colours() -> None:
    """Colours are for eyes alone."""
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor, not a path
        configure("console", "info", stream=stream)
        log.error("record.stopped")
        shown = os.read(ours, 1000).decode()
    os.close(ours)
    assert "\x1b[31merror" in shown
    assert "\x1b[1mrecord.stopped" in shown


def test_json_has_one_object_a_line(lines: io.TextIOWrapper) -> None:
    """Every fact is a key; time, level and event come first."""
    configure("json", "info", stream=lines)
    log.warning("record.failed", record="r1", reason="a\nb", where=Path("/x"))
    (line,) = said(lines).splitlines()
    entry = json.loads(line)
    assert list(entry)[:3] == ["timestamp", "level", "event"]
    assert (entry["level"], entry["event"], entry["reason"], entry["where"]) == (
        "warning",
        "record.failed",
        "a\nb",
        "/x",
    )


def test_what_is_below_the_level_is_not_said(lines: io.TextIOWrapper) -> None:
    """An empty run writes nothing for the owner to read."""
    configure("console", "info", stream=lines)
    log.debug("record.claimed")
    assert said(lines) == ""


def test_a_failure_is_one_entry_with_its_whole_story_once(lines: io.TextIOWrapper) -> None:
    """A group's members and their causes are all there, each exactly once."""
    configure("json", "info", stream=lines)
    try:
        try:
            fail(OSError("disk is full"))
        except OSError as cause:
            raise ExceptionGroup("two things", [ValueError("first"), RuntimeError("second")]) from cause
    except ExceptionGroup:
        log.exception("request.failed")
    (line,) = said(lines).splitlines()
    story = json.loads(line)["exception"]
    assert [
        story.count(text) for text in ("OSError: disk is full", "ValueError: first", "Error: second")
    ] == [1, 1, 1]


def test_a_closed_stream_does_not_fail_the_work(lines: io.TextIOWrapper) -> None:
    """Whoever closes our stderr loses the log, not the records."""
    configure("console", "info", stream=lines)
    lines.close()
    log.info("service.stopped")


async def test_a_task_says_what_its_parent_bound(lines: io.TextIOWrapper) -> None:
    """The context follows the work into its nurseries, and no further than its own."""
    configure("json", "info", stream=lines)

    async def attempt(record: str) -> None:
        with structlog.contextvars.bound_contextvars(record=record):
            await trio.lowlevel.checkpoint()
            async with trio.open_nursery() as inner:
                inner.start_soon(reach)

    async def reach() -> None:
        await trio.lowlevel.checkpoint()
        log.info("record.reached")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(attempt, "r1")
        nursery.start_soon(attempt, "r2")
    log.info("service.stopped")
    told = [json.loads(line).get("record") for line in said(lines).splitlines()]
    assert sorted(told[:2]) == ["r1", "r2"]
    assert told[2:] == [None]


# Libraries


def test_a_librarys_warning_is_an_entry_of_ours(lines: io.TextIOWrapper) -> None:
    """What hypercorn or psycopg warn about is told in the same form, once, with its traceback."""
    configure("json", "info", stream=lines)
    configure("json", "info", stream=lines)
    try:
        fail(OSError("gone"))
    except OSError:
        logging.getLogger("some.library").warning("error connecting in %r", "pool-1", exc_info=True)
    logging.getLogger("some.library").info("all is well")
    logging.getLogger("hypercorn.error").log(logging.ERROR + 5, "odd level")
    first, second = (json.loads(line) for line in said(lines).splitlines())
    assert (first["event"], first["level"], first["library"]) == ("library.warned", "warning", "some.library")
    assert first["said"] == "error connecting in 'pool-1'"
    assert first["exception"].endswith("OSError: gone")
    assert second["level"] == "error"


def test_a_library_that_repeats_itself_floods_no_log(
    lines: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same words are told once a minute, with how often they came; other words at once."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    configure("json", "info", stream=lines)
    for _ in range(5):
        logging.getLogger("trio.serve_listeners").error("accept returned %s", "EMFILE")
    logging.getLogger("trio.serve_listeners").error("accept returned %s", "ENFILE")
    now[0] += 61
    logging.getLogger("trio.serve_listeners").error("accept returned %s", "EMFILE")
    told = [json.loads(line) for line in said(lines).splitlines()]
    assert [(entry["said"][-6:], entry.get("repeated")) for entry in told] == [
        ("EMFILE", None),
        ("ENFILE", None),
        ("EMFILE", 4),
    ]


# Secrets

SECRET = "rbz_" + "Ab1-_" * 8 + "xyz"


@pytest.mark.parametrize(
    "facts",
    [
        {"secret": "hush"},
        {"token_secret": "hush"},
        {"Authorization": "Bearer hush"},
        {"headers": {"authorization": "Basic hush", "cookie": "session=hush"}},
        {"password": ["hush"]},
        {"reason": f"{SECRET} is not known".replace(SECRET, SECRET + "hush")},
        {"reason": "said Bearer hush to us"},
        {"dsn": "postgresql://rubezh:hush@db.example/rubezh"},
        {"dsn": "host=db.example password=hush user=rubezh"},
        {"dsn": "host=db.example password = 'hu sh\\'hush' user=rubezh"},
        {"reason": OSError("cannot reach postgresql://rubezh:hush@db.example/rubezh")},
        {"reasons": ("fine", "postgresql://:hush@db.example")},
    ],
)
def test_no_secret_is_said(lines: io.TextIOWrapper, facts: dict[str, object]) -> None:
    """Neither under a telling key nor in the middle of a sentence."""
    configure("console", "info", stream=lines)
    log.info("request.failed", **facts)
    assert "hush" not in said(lines)
    assert HIDDEN in said(lines)


def test_no_secret_is_said_by_a_traceback(lines: io.TextIOWrapper) -> None:
    """The text of an exception may hold an address with its password."""
    configure("console", "info", stream=lines)
    address = "postgresql://rubezh:" + "hush" + "@db.example"
    try:
        fail(OSError(f"cannot reach {address}"))
    except OSError:
        log.exception("request.failed")
    assert "postgresql://rubezh:[hidden]@db.example" in said(lines)
    assert "hush@" not in said(lines)


def test_what_is_no_secret_is_said() -> None:
    """Claim tokens, ids, addresses without a password, and times stay readable."""
    facts = {
        "event": "claim.lost",
        "token": "0199d1c2-7f00-7000-8000-000000000000",
        "dsn": "host=/var/lib/rubezh/postgres/run dbname=rubezh",
        "url": "https://example.org:8443/a@b",
        "seconds": 2.0,
    }
    assert hide_secrets(None, "info", dict(facts)) == facts
    assert word_facts(facts).startswith("token=0199d1c2-7f00-7000-8000-000000000000 dsn=")
