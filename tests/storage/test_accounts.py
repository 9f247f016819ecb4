"""Accounts and tokens."""

from datetime import UTC, datetime, timedelta

import pytest
import trio

from storage.account import Account
from storage.accounts import (
    Deleted,
    HandedOver,
    account_of_secret,
    add_account,
    disable_account,
    find_account,
    find_or_add_account,
    issue_token,
    list_accounts,
    list_tokens,
    remove_account,
    revoke_token,
)
from storage.audio import Store
from storage.database import Database
from storage.errors import DataRefused, Refused
from storage.ids import new_id
from storage.removals import carry_out_removals
from storage.upload_files import resumed
from storage.uploads import Begun, begin_upload
from tests.making import a_record, an_account, put


async def test_a_secret_opens_its_own_account(database: Database) -> None:
    """Each secret leads to the account it was issued for, and looks like a secret of ours."""
    anna, anna_secret = await an_account(database, "anna")
    boris, boris_secret = await an_account(database, "boris")
    assert anna_secret.startswith("rbz_")
    assert len(anna_secret) == 47
    assert await account_of_secret(database, anna_secret) == anna
    assert await account_of_secret(database, boris_secret) == boris


async def test_a_secret_is_kept_as_a_hash_only(database: Database) -> None:
    """Nothing in the database holds the secret, in whole or in its random part."""
    _, secret = await an_account(database)
    for statement in ("SELECT row_to_json(t)::text FROM tokens AS t", "SELECT name FROM accounts"):
        rows = await put(database, statement)
        assert secret.removeprefix("rbz_") not in str(rows)
    assert await put(database, "SELECT octet_length(secret_sha256) FROM tokens") == [(32,)]


@pytest.mark.parametrize(
    "secret", ["", "rbz_", "x" * 47, "rbz_" + "\x00" * 43, "rbz_\ud800", "rbz_" + "a" * 10**6]
)
async def test_what_is_no_secret_opens_nothing(database: Database, secret: str) -> None:
    """A wrong secret of any form is None, never an error."""
    await an_account(database)
    assert await account_of_secret(database, secret) is None


async def test_a_token_can_end_in_three_ways(database: Database) -> None:
    """Revoked, expired, or of a disabled account: the secret opens nothing."""
    account, kept = await an_account(database)
    token, revoked = await issue_token(database, account.id, "phone", None)
    assert (await revoke_token(database, token.id)) is not None
    assert await account_of_secret(database, revoked) is None
    now = datetime.now(UTC)
    _, expired = await issue_token(database, account.id, "old", now - timedelta(seconds=1))
    _, lasting = await issue_token(database, account.id, "new", now + timedelta(hours=1))
    assert await account_of_secret(database, expired) is None
    assert await account_of_secret(database, lasting) == account
    await disable_account(database, account.id)
    assert await account_of_secret(database, kept) is None
    await disable_account(database, account.id, disabled=False)
    assert await account_of_secret(database, kept) == account


async def test_revoking_twice_keeps_the_first_moment(database: Database) -> None:
    """And a token that never was is None."""
    account, _ = await an_account(database)
    token, _ = await issue_token(database, account.id, "phone", None)
    first = await revoke_token(database, token.id)
    assert await revoke_token(database, token.id) == first
    assert await revoke_token(database, new_id()) is None
    assert [each.revoked_at is None for each in await list_tokens(database, account.id)] == [True, False]


async def test_use_is_noted_once_a_minute(database: Database) -> None:
    """Polls that come many a second cost one write a minute."""
    account, secret = await an_account(database)

    async def noted() -> datetime | None:
        (token,) = await list_tokens(database, account.id)
        return token.last_used_at

    assert await noted() is None
    await account_of_secret(database, secret)
    first = await noted()
    assert first is not None
    await account_of_secret(database, secret)
    assert await noted() == first
    await put(database, "UPDATE tokens SET last_used_at = last_used_at - interval '61 seconds'")
    await account_of_secret(database, secret)
    later = await noted()
    assert later is not None
    assert later > first


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "a\nb"])
async def test_a_name_must_be_printable(database: Database, name: str) -> None:
    """What is no name is refused in a sentence."""
    with pytest.raises(Refused, match="give it one"):
        await add_account(database, name)


async def test_a_name_has_a_length_that_can_be_shown(database: Database) -> None:
    """The longest that may be, and one more."""
    assert (await add_account(database, "я" * 200)).name == "я" * 200
    with pytest.raises(Refused, match="may have 200 letters, this has 201; shorten it"):
        await add_account(database, "я" * 201)


async def test_a_taken_name_is_refused(database: Database) -> None:
    """Two accounts never share a name."""
    await add_account(database, "anna")
    with pytest.raises(Refused, match="'anna' already"):
        await add_account(database, "anna")


async def test_an_account_found_or_made_at_once_is_one(database: Database) -> None:
    """Ten processes that need the same account get the same."""
    found: list[Account] = []

    async def find() -> None:
        found.append(await find_or_add_account(database, "local"))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(find)
    assert found == [await find_account(database, "local")] * 10
    assert await list_accounts(database) == tuple(found[:1])


async def test_s_s10_no_record_without_an_owner(database: Database, store: Store) -> None:
    """A record of nobody is refused by the database; an account with records is not removed, and told why."""
    account, secret = await an_account(database)
    record_id = await a_record(database, store, account)
    with pytest.raises(DataRefused, match="null value"):
        await put(database, "UPDATE records SET owner_id = NULL")
    with pytest.raises(Refused, match=r"has 1 record\(s\); hand them over \(--hand-over-to\) or delete"):
        await remove_account(database, account)
    with pytest.raises(DataRefused, match="foreign key"):
        await put(database, "DELETE FROM accounts")
    assert await account_of_secret(database, secret) == account
    await put(database, "DELETE FROM records WHERE id = %s", record_id)
    await remove_account(database, account)
    assert await find_account(database, "anna") is None
    assert await account_of_secret(database, secret) is None


async def an_upload(database: Database, store: Store, account: Account) -> None:
    """Begin an upload with a file of its own."""
    begun = Begun(
        id=new_id(),
        account_id=account.id,
        store_id=store.id,
        bytes=9,
        metadata="",
        options={},
        kept_seconds=60,
    )
    await begin_upload(database, begun, 5)
    async with resumed(store, begun.id) as file:
        await file.write(b"x")
        await file.flush()


@pytest.mark.parametrize("fate", ["handed over", "deleted"])
async def test_s_s14_an_account_with_records_is_removed_by_name_only(
    database: Database, store: Store, fate: str
) -> None:
    """Its records are another's, or gone with their bytes; tokens and what was unfinished are gone."""
    anna, secret = await an_account(database, "anna")
    boris, _ = await an_account(database, "boris")
    records = {await a_record(database, store, anna) for _ in range(3)}
    others = await a_record(database, store, boris)
    await put(database, "UPDATE records SET deleted_at = now() WHERE id = %s", min(records))
    await an_upload(database, store, anna)
    told = HandedOver(boris, "root") if fate == "handed over" else Deleted()
    assert await remove_account(database, anna, told) == 3
    await carry_out_removals(database, store)
    assert await find_account(database, "anna") is None
    assert await account_of_secret(database, secret) is None
    assert await put(database, "SELECT 1 FROM uploads") == []
    assert await put(database, "SELECT 1 FROM removals") == []
    assert list((store.root / "uploads").iterdir()) == []
    left = {row[0] for row in await put(database, "SELECT id FROM records WHERE owner_id = %s", boris.id)}
    kept = {others} | (records if fate == "handed over" else set())
    assert left == kept
    assert {path.name for path in (store.root / "records").iterdir()} == set(map(str, kept))
    events = await put(database, "SELECT record_id, by, detail FROM events WHERE kind = 'handed_over'")
    if fate == "handed over":
        assert {event[0] for event in events} == records
        assert {(event[1], event[2]["from"], event[2]["to"]) for event in events} == {
            ("root", "anna", "boris")
        }
    else:
        assert events == []
