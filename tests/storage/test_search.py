"""The words that records are found by."""

from typing import Any

import psycopg

from storage.sql import query
from tests.builders import Queue, ask
from tests.storage.test_sql import HISTORY, PLACEHOLDER, SAMPLES, nodes_of

WORDS_OF = """SELECT length(words) AS words, words @@ websearch_to_tsquery('russian', %s) AS found
    FROM (SELECT words_of(%s) AS words OFFSET 0) AS once"""


async def looked_for(queue: Queue, said: str, search: str) -> tuple[int, bool]:
    """Return how many words there are in a text, and whether one of them is found."""
    [row] = await ask(queue.database, WORDS_OF, [search, said])
    return row["words"], row["found"]


async def test_no_text_has_too_many_words(queue: Queue) -> None:
    """More of them than fit with their places, or at all: the settle that writes them does not fail."""
    many = " ".join(f"слово{number}" for number in range(60_000))
    words, found = await looked_for(queue, many, "слово59999")
    assert words >= 60_000
    assert found
    most = " ".join(f"слово{number}" for number in range(150_000))
    words, found = await looked_for(queue, most, "слово1")
    assert words > 10_000
    assert found
    assert await looked_for(queue, "x" * 1_500_000, "x") == (0, False)
    assert await looked_for(queue, "", "x") == (0, False)


async def test_the_longest_text_is_written(queue: Queue) -> None:
    """As the text of a record, by the update that a settle makes."""
    record_id = await queue.record()
    long = " ".join(f"слово{number}" for number in range(150_000))
    await queue.change(record_id, recognised_text=long)
    [row] = await ask(queue.database, "SELECT length(words) AS words FROM record_words")
    assert row["words"] > 10_000


async def test_words_are_found_by_their_index(queue: Queue, dsn: str) -> None:
    """A rare word among a hundred thousand records is found without looking at all of them."""
    with psycopg.connect(dsn, autocommit=True) as setting:
        setting.execute(HISTORY, {"owner": queue.owner, "store": queue.store})
        wanted = await queue.record(title="Наводнение")
        setting.execute("ANALYZE records")
        setting.execute("ANALYZE record_words")
        text = query("records_found")
        asked: dict[str, Any] = SAMPLES | {"owner_id": queue.owner, "search": "наводнения", "milestone": None}
        asked |= {"before_at": None, "before_id": None}
        given = {key: asked[key] for key in PLACEHOLDER.findall(text)}
        row = setting.execute(b"EXPLAIN (FORMAT JSON) " + text.encode(), given).fetchone()
        assert row is not None
        assert "record_words_found" in {node.get("Index Name") for node in nodes_of(row[0][0]["Plan"])}
        found = setting.execute(text.encode(), given).fetchall()
    assert [each[0] for each in found] == [wanted]


async def test_every_record_has_its_words(queue: Queue) -> None:
    """From its first moment until it goes for good."""
    record_id = await queue.record(title="Один")
    assert len(await ask(queue.database, "SELECT record_id FROM record_words")) == 1
    await ask(queue.database, "DELETE FROM records WHERE id = %s", [record_id])
    assert await ask(queue.database, "SELECT record_id FROM record_words") == []
