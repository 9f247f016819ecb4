"""Every statement fits the schema, is used, and finds its rows by the index that was made for it."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb

import storage
from storage.claim import Claim
from storage.floors import BOTTOM
from storage.record import Milestone
from storage.sql import query
from tests.builders import EVERY_LANE, LEASES, Queue, ask

ROOM = Path(storage.__file__).parent
NAMES = sorted(path.stem for path in (ROOM / "sql").glob("*.sql"))
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
STATEMENT = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# One value of the right kind for each parameter that any statement has, and what else it may be.
SAMPLES: dict[str, Any] = {
    "account_id": uuid4(),
    "after": 0,
    "answer": Json({"id": "one"}),
    "asked_language": None,
    "audio_path": "records/a/b/audio.w64",
    "audio_warnings": ["cut off"],
    "before_at": NOW,
    "before_id": uuid4(),
    "by": "one",
    "bytes_per_second": 16_000.0,
    "channels": "auto",
    "claimed_by": "one",
    "code": "overdue",
    "counts": True,
    "declared_seconds": None,
    "decoded_seconds": 1.5,
    "delay": 30,
    "description": "",
    "detail": Jsonb({"why": "stop"}),
    "disabled": True,
    "edition": 1,
    "expires_at": None,
    "failed_because": None,
    "failures_limit": 3,
    "fields": ["title"],
    "first": 0,
    "filename": "talk.ogg",
    "fingerprint": bytes(32),
    "found_language": None,
    "holder": uuid4(),
    "hotwords": "",
    "id": uuid4(),
    "idempotency_key": "one",
    "idle_seconds": 60.0,
    "ids": [uuid4()],
    "is_service_owner": False,
    "kept_seconds": 60.0,
    "key": 2**62,
    "kind": "failed",
    "lane": "convert",
    "lanes": list(EVERY_LANE),
    "floors": [BOTTOM for _ in EVERY_LANE],
    "wake_from": BOTTOM,
    "lease_seconds": 60.0,
    "left_name": None,
    "leases": list(LEASES.values()),
    "limit": 100,
    "longest_seconds": 60.0,
    "media": "audio/mpeg",
    "metadata": "",
    "milestone": "created",
    "milestones": list(LEASES),
    "most_ahead": 100,
    "name": "anna",
    "new": "another hash",
    "number": 1,
    "old": "a hash",
    "operation": Jsonb({}),
    "options": Jsonb({}),
    "overdue_reason": "late",
    "owner_id": uuid4(),
    "password_hash": None,
    "path": "records/a/listening/b/listening.mp3",
    "payload_sha256": bytes(32),
    "peaks": bytes(2),
    "reason": "late",
    "received": 1,
    "recognised_seconds": 1.5,
    "recogniser": "whisper",
    "record_id": uuid4(),
    "right_name": None,
    "run": "one",
    "search": "a talk",
    "seconds": 60.0,
    "secret_sha256": bytes(32),
    "second": 1.5,
    "secrets": [bytes(32)],
    "segments": Jsonb([]),
    "sign": None,
    "slice": 0,
    "slices": [0],
    "source_bytes": 2**40,
    "source_path": "records/a/source",
    "source_sha256": bytes(32),
    "stopped": None,
    "store_id": uuid4(),
    "stores": [uuid4()],
    "text": "said",
    "title": "",
    "translate": False,
    "token": uuid4(),
    "tokens": [uuid4()],
    "topics": [],
    "track": None,
    "with_text": [uuid4()],
}
OTHERWISE: dict[str, Any] = {
    "asked_language": "ru",
    "before_at": None,
    "before_id": None,
    "declared_seconds": 2.5,
    "delay": 0.0,
    "expires_at": NOW,
    "found_language": "ru",
    "lane": None,
    "limit": 3600.0,
    "milestone": "done",
    "owner_id": None,
    "password_hash": "a hash",
    "sign": Jsonb({"run": "one", "stores": [], "milestones": [], "lanes": []}),
    "stopped": True,
    "stores": [],
    "lanes": [],
    "floors": [],
    "tokens": [],
    "topics": ["one"],
    "track": 1,
    "edition": None,
    "title": None,
    "description": None,
}


@pytest.mark.parametrize("others", [{}, OTHERWISE], ids=["as usual", "otherwise"])
async def test_every_statement_fits_the_schema(queue: Queue, others: dict[str, Any]) -> None:
    """The server plans each with the parameters as the driver sends them, also with the rarer ones."""
    for name in NAMES:
        text = query(name)
        given = {key: (SAMPLES | others)[key] for key in PLACEHOLDER.findall(text)}
        utility = not STATEMENT.match(without_comments(text))
        prefix = "" if utility else "EXPLAIN "
        rows = await ask(queue.database, psycopg.sql.SQL(prefix) + psycopg.sql.SQL(text), given)
        assert rows or utility, name


def without_comments(text: str) -> str:
    """The text of a statement without the lines that explain it."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--")).strip()


def test_no_sample_is_left_over() -> None:
    """A parameter that no statement has any more leaves the list."""
    used = {key for name in NAMES for key in PLACEHOLDER.findall(query(name))}
    assert set(SAMPLES) == used
    assert set(OTHERWISE) <= used


def test_every_statement_is_used_and_every_use_has_one() -> None:
    """No file lies about, and none is named that is not there."""
    code = "\n".join(path.read_text() for path in ROOM.glob("*.py"))
    assert sorted(set(re.findall(r'query\("(\w+)"\)', code))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_says_what_it_is_for(name: str) -> None:
    """A sentence stands before each, and each file is one statement."""
    text = (ROOM / "sql" / f"{name}.sql").read_text()
    assert re.match(r"-- [A-Z].*", text)
    assert text.endswith("\n")
    assert ";" not in without_comments(text)


GUARDED = [name for name in NAMES if name.startswith(("end_", "write_")) and name != "end_found"]
AFTER_THE_GUARD = {"write_segments"}  # written in the transaction whose guarded update came first


@pytest.mark.parametrize("woken", [False, True], ids=["held", "lapsed and woken"])
async def test_every_write_of_an_attempt_asks_for_its_token(queue: Queue, *, woken: bool) -> None:
    """Each statement by itself leaves a record alone that another token holds, or none."""
    held, free = await queue.record(), await queue.record(Milestone.TRANSCRIBE)
    claim = await queue.claim()
    assert claim.record_id == held
    if woken:
        await queue.lapse(held)
        await queue.claims.wake()
    before = [await queue.everything(record_id) for record_id in (held, free)]
    for name in sorted({*GUARDED} - AFTER_THE_GUARD):
        for record_id in (held, free):
            text, asked = query(name), SAMPLES | {"id": record_id, "token": uuid4(), "lane": "convert"}
            rows = await ask(queue.database, text, {key: asked[key] for key in PLACEHOLDER.findall(text)})
            assert rows == [], name
    assert [await queue.everything(record_id) for record_id in (held, free)] == before


HISTORY = """
INSERT INTO records (id, owner_id, store_id, milestone, lane, filename, source_path, source_bytes,
    source_sha256, fingerprint, created_at, recognised_text, failures, wake_at)
SELECT gen_random_uuid(), %(owner)s, %(store)s, kind.milestone, kind.lane, 'talk.ogg', 'source', 4096,
    decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex'),
    clock_timestamp() - make_interval(secs => n), kind.text, kind.failures,
    clock_timestamp() + kind.wakes_in
FROM (VALUES
    ('done', NULL, 'text', 0, NULL::interval, 100000),
    ('created', 'convert', NULL, 0, NULL, 600),
    ('transcribe', 'whisper', NULL, 1, NULL, 300),
    ('transcribe', 'whisper', NULL, 1, '1 hour', 50),
    ('created', 'convert', NULL, 3, '-1 s', 50)
) AS kind (milestone, lane, text, failures, wakes_in, count)
CROSS JOIN LATERAL generate_series(1, kind.count) AS n
"""


async def test_the_claim_walks_its_own_indexes(queue: Queue, dsn: str) -> None:
    """Beside a hundred thousand done records and a thousand others it reads few pages, and no table whole."""
    with psycopg.connect(dsn, autocommit=True) as setting:
        setting.execute(HISTORY, {"owner": queue.owner, "store": queue.store})
        setting.execute("ANALYZE records")
        asked = SAMPLES | {"token": uuid4(), "stores": [queue.store]}
        statement = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query("claim")
        row = setting.execute(statement.encode(), asked).fetchone()
    assert row is not None
    [explained] = row[0]
    nodes = list(nodes_of(explained["Plan"]))
    scanned = {node["Index Name"] for node in nodes if "Index Name" in node}
    assert {"records_awake", "records_asleep", "records_failing", "records_pkey"} <= scanned
    assert [
        node for node in nodes if node["Node Type"] == "Seq Scan" and node["Relation Name"] == "records"
    ] == []
    assert explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"] < 2000
    assert explained["Execution Time"] < 100
    claims = [await queue.ask() for _ in range(5)]
    assert all(isinstance(claim, Claim) for claim in claims)


async def test_what_the_keeper_asks_every_second_is_found_by_index(queue: Queue, dsn: str) -> None:
    """Nor what monitoring does: no table is read whole, however many records are done."""
    with psycopg.connect(dsn, autocommit=True) as setting:
        setting.execute(HISTORY, {"owner": queue.owner, "store": queue.store})
        setting.execute("ANALYZE records")
        for name, index in (
            ("renew", "records_claim"),
            ("wake", "records_asleep"),
            ("end_given_back", "records_claim"),
            ("queue_numbers", "records_asleep"),
        ):
            statement = "EXPLAIN (FORMAT JSON) " + query(name)
            row = setting.execute(statement.encode(), SAMPLES).fetchone()
            assert row is not None
            nodes = list(nodes_of(row[0][0]["Plan"]))
            assert index in {node.get("Index Name") for node in nodes}, name
            assert "Seq Scan" not in {
                node["Node Type"] for node in nodes if node.get("Relation Name") == "records"
            }


def nodes_of(plan: dict[str, Any]) -> "list[dict[str, Any]]":
    """Every node of a plan."""
    return [plan, *(inner for part in plan.get("Plans", ()) for inner in nodes_of(part))]
