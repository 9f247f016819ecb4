"""What services elsewhere allow: taken by all workers of all daemons together, by the database's clock."""

from storage.database import Connection, Database
from storage.sql import query


async def take_quota(database: Database, name: str, *, requests: int, seconds: float) -> float:
    """Take one of the `requests` in any `seconds` and return 0, or return the seconds until there is one.

    With 0 requests there is no limit but the pauses that were asked for. After DatabaseUnavailable one may
    have been taken in vain.
    """
    asked = {"name": name, "requests": requests, "seconds": seconds}
    return await database.transact(_in_take, asked)


async def pause_quota(database: Database, name: str, seconds: float) -> None:
    """Have nobody take any of it for so long; a longer pause there is stays."""
    await database.transact(_in_pause, {"name": name, "seconds": seconds})


async def _in_take(connection: Connection, asked: dict[str, object]) -> float:
    row = await (await connection.execute(query("quota_taken"), asked)).fetchone()
    if row is None:
        raise RuntimeError("a quota's row is always there once it was asked for")
    return float(row[0])


async def _in_pause(connection: Connection, asked: dict[str, object]) -> None:
    await connection.execute(query("quota_paused"), asked)
