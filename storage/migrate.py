"""Numbered migrations, `storage/migrations/NNNN_name.sql`, applied in one transaction under one lock.

Four processes that start at once apply them once; a process killed half-way leaves the old schema or the new
one; a database newer than this program is refused.
"""

from importlib.resources import files
from typing import LiteralString, cast
from uuid import UUID, uuid4

from attrs import frozen

from storage.database import Connection, Database
from storage.errors import DatabaseRefused
from storage.sql import query

LONGEST_SECONDS = 3600.0


@frozen
class Migration:
    """One step of the schema, `number` counted from 1 without gaps."""

    number: int
    name: str
    text: LiteralString


def migrations() -> tuple[Migration, ...]:
    """Return every migration this program knows, in order."""
    found = []
    for file in files(__package__).joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, file.read_text("utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.number))


async def migrate(database: Database, known: tuple[Migration, ...] | None = None) -> int:
    """Bring the schema up to `known` (default: all of them); return how many steps were taken.

    Raises DatabaseRefused when the database has been migrated further than `known`.
    """
    steps = migrations() if known is None else known
    return await database.transact_within(LONGEST_SECONDS, _in_migrate, steps)


async def installation(database: Database) -> UUID:
    """Return the id of this installation, made when the database was first used."""
    return await database.transact(_in_installation)


async def _in_migrate(connection: Connection, steps: tuple[Migration, ...]) -> int:
    async with connection.transaction():
        await connection.execute(query("migration_patience"))
        await connection.execute(query("migration_lock"))
        await connection.execute(query("migration_table"))
        cursor = await connection.execute(query("migration_reached"))
        row = await cursor.fetchone()
        reached: int = row[0] if row else 0
        if reached > len(steps):
            message = (
                f"the database has schema {reached}, newer than the {len(steps)} this program knows; "
                "start the newer program, or restore a backup made before it"
            )
            raise DatabaseRefused(message)
        for step in steps[reached:]:
            await connection.execute(step.text)
            await connection.execute(query("migration_done"), {"number": step.number, "name": step.name})
    return len(steps) - reached


async def _in_installation(connection: Connection) -> UUID:
    async with connection.transaction():
        await connection.execute(query("installation_made"), {"id": uuid4()})
        cursor = await connection.execute(query("installation_read"))
        row = await cursor.fetchone()
    if row is None:
        message = "the database lost its installation row; restore it from a backup"
        raise DatabaseRefused(message)
    return cast("UUID", row[0])
