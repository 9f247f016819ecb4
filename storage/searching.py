"""Where in a text stands what was searched for."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from attrs import frozen
from psycopg.rows import dict_row

from storage.database import Connection, Database
from storage.sql import query

MOST_HITS = 3
_BEGIN, _END = "\ue000", "\ue001"


@frozen
class Piece:
    """A piece of a text, and whether it is what was searched for."""

    text: str
    is_found: bool


@frozen
class Hit:
    """A segment in which it stands, from `start` seconds on."""

    start: float
    pieces: Sequence[Piece]


async def read_hits(database: Database, ids: Collection[UUID], search: str) -> Mapping[UUID, Sequence[Hit]]:
    """Return the best hits in the texts of these records, in the order of the audio; for those that have any.

    Whose records they are was asked before.
    """
    return await database.transact(_in_read_hits, ids, search)


def pieces_of(text: str, marked: str) -> Sequence[Piece]:
    """Return a text in pieces, by marks that stand in a copy of it which may differ in its letters' case."""
    plain = marked.replace(_BEGIN, "").replace(_END, "")
    if len(plain) != len(text):  # the marking left something out, as it does with what looks like a tag
        return (Piece(text, is_found=False),)
    pieces, place, is_found = [], 0, False
    for part in marked.replace(_END, _BEGIN).split(_BEGIN):
        if part:
            pieces.append(Piece(text[place : place + len(part)], is_found))
        place, is_found = place + len(part), not is_found
    return tuple(pieces)


async def _in_read_hits(connection: Connection, ids: Collection[UUID], search: str) -> dict[UUID, list[Hit]]:
    asked: dict[str, Any] = {"ids": list(ids), "search": search, "limit": MOST_HITS}
    found: dict[UUID, list[Hit]] = {}
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("search_hits"), asked)
        async for row in cursor:
            hit = Hit(row["start_seconds"], pieces_of(row["text"].strip(), row["marked"].strip()))
            found.setdefault(row["record_id"], []).append(hit)
    return found
