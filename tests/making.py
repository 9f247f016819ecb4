"""Makes accounts and records for tests, through the same doors as the service."""

from typing import Any
from uuid import UUID

from storage.account import Account
from storage.accounts import add_account, issue_token
from storage.audio import Store
from storage.database import Connection, Database
from storage.ids import new_id
from storage.submissions import Submission, accept

LANE = "convert"
BYTES = b"RIFF of a kind"


async def an_account(database: Database, name: str = "anna") -> tuple[Account, str]:
    """Return a new account and the secret of a token of its."""
    account = await add_account(database, name)
    _, secret = await issue_token(database, account.id, "test", None)
    return account, secret


async def a_submission(store: Store, owner: Account, content: bytes = BYTES, **changes: Any) -> Submission:
    """Return a submission whose bytes are in the store."""
    record_id = new_id()
    async with store.receive(record_id) as receiving:
        await receiving.write(content)
        received = await receiving.keep()
    given: dict[str, Any] = {
        "id": record_id,
        "owner_id": owner.id,
        "filename": "talk.wav",
        "title": "A talk",
        "description": "",
        "topics": ("one", "two"),
        "asked_language": None,
        "channels": "auto",
        "track": None,
        "hotwords": "",
        "store_id": store.id,
        "source_path": received.path,
        "source_bytes": received.size,
        "source_sha256": received.sha256,
    }
    return Submission(**{**given, **changes})


async def a_record(database: Database, store: Store, owner: Account, **changes: Any) -> UUID:
    """Return the id of a record that waits for its first stage."""
    return await accept(database, await a_submission(store, owner, **changes), lane=LANE)


async def put(database: Database, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement of the test's own; return its rows, if it has any."""

    async def _in_put(connection: Connection) -> list[tuple[Any, ...]]:
        cursor = await connection.execute(statement, values)
        return await cursor.fetchall() if cursor.description else []

    return await database.transact(_in_put)


async def change(database: Database, record_id: UUID, assignments: str) -> None:
    """Change a record's columns as no code of ours would."""
    await put(database, f"UPDATE records SET {assignments} WHERE id = %s", record_id)  # noqa: S608 - a test's own words
