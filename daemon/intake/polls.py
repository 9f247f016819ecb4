"""What is asked again and again, by many at once: who somebody is, and what a record is at."""

from functools import partial
from uuid import UUID

from daemon.intake.changes import Changes
from daemon.intake.problems import no_such_record
from daemon.intake.together import Together
from storage.account import Account
from storage.database import Database
from storage.entries import Entered, Entry, Look, enter, look_at
from storage.readiness import Readiness
from storage.record import Milestone


class Polls:
    """What is asked again and again, by many at once."""

    def __init__(self, database: Database) -> None:
        """Begin with nobody waiting."""
        self.changes = Changes()
        self.entries: Together[Entry, Entered] = Together(partial(enter, database))
        self._records: Together[Look, Readiness] = Together(partial(look_at, database))

    async def look(self, record_id: UUID, account: Account, *, with_text: bool = True) -> Readiness:
        """Return what a record is at; raises Problem for one that is not there, or not the account's."""
        found = await self._records.ask(Look(record_id, with_text))
        return await self.shown_to(account, record_id, found, with_text=with_text)

    async def find(self, look: Look) -> Readiness | None:
        """Return what there is of a record, whoever's it is."""
        return await self._records.ask(look)

    async def shown_to(
        self, account: Account, record_id: UUID, found: Readiness | None, *, with_text: bool
    ) -> Readiness:
        """Return what was found of a record, if the account may see it; raises Problem as `look` does."""
        if found is None or found.owner_id != account.id:
            raise no_such_record()
        if with_text and found.text is None and found.milestone is Milestone.DONE:
            # It became done between two questions that were asked together, one without its text.
            return await self.look(record_id, account)
        return found
