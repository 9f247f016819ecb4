"""Our whole service as a queue: real claims, workers, attempts and settles, around stages that do nothing."""

from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from pathlib import Path

import psycopg
from attrs import evolve, frozen

from daemon.parts import Ground
from daemon.service import serve
from daemon.settings import DatabaseSettings, Settings, WorkSettings
from stages.stage import Outcome, Reached, Stage, Tools
from storage.audio import Store
from storage.folder import StateFolder
from storage.ids import new_id
from storage.record import Advance, Conversion, Findings, Milestone, OperationBegun, Record

LANES = {Milestone.CREATED: "convert", Milestone.CONVERTED: "whisper", Milestone.TRANSCRIBE: "whisper"}
FOUND: Mapping[Milestone, Findings] = {
    Milestone.CREATED: Conversion(
        audio_path="records/x/y/audio.w64", declared_seconds=60.0, decoded_seconds=60.0, audio_warnings=()
    ),
    Milestone.CONVERTED: OperationBegun(recogniser="nothing", operation={}),
    Milestone.TRANSCRIBE: Advance(
        operation={}, recognised_seconds=60.0, found_language="en", segments=(), anew=False),
}  # fmt: skip
Heard = Callable[[Record], None]


@frozen(kw_only=True)
class Nothing:
    """A stage that does nothing but tell that it was called."""

    takes: Milestone
    gives: Milestone
    heard: Heard
    lease_seconds: float = 60.0

    @property
    def name(self) -> str:
        """As the log has it."""
        return f"nothing_at_{self.takes}"

    @property
    def lane(self) -> str:
        """The lanes of a real line."""
        return LANES[self.takes]

    def time_limit(self, record: Record) -> float:
        """Return more than it needs."""
        del record
        return 60.0

    def milestone_limit(self, record: Record) -> float:
        """Return more than it needs."""
        del record
        return 3600.0

    async def work(self, record: Record, tools: Tools) -> Outcome:
        """Bring the record on."""
        del tools
        self.heard(record)
        return Reached(FOUND[self.takes])

    async def check_means(self) -> None:
        """Need none."""


async def serve_nothing(
    dsn: str,
    state: Path,
    visitor: Callable[[Ground], Awaitable[None]],
    heard: Heard = lambda _: None,
    *,
    listen: bool = True,
    workers: int = 1,
) -> None:
    """Serve as `rubezh serve` does, without its doors, for as long as the visitor stays."""
    line: tuple[Stage, ...] = tuple(
        Nothing(takes=takes, gives=gives, heard=heard) for takes, gives in pairwise(Milestone)
    )

    def line_of(_settings: Settings, _folder: StateFolder) -> tuple[Stage, ...]:
        return line

    settings = Settings(
        state=state,
        database=evolve(DatabaseSettings(), dsn=dsn, listen=listen),
        work=evolve(WorkSettings(), workers=workers),
    )
    await serve(settings, doors=False, visitor=visitor, line_of=line_of)


def fill(dsn: str, store: Store, records: int) -> None:
    """Make records that want one stage more, each with its folder in the store."""
    made = [new_id() for _ in range(records)]
    for record_id in made:
        store.record_folder(record_id).mkdir()
    with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts (id, name) VALUES (%s, 'bench') ON CONFLICT DO NOTHING", [new_id()]
        )
        cursor.execute(
            """
            INSERT INTO records (id, owner_id, filename, store_id, source_path, source_bytes, source_sha256,
                fingerprint, milestone, lane)
            SELECT made.id, accounts.id, 'bench.flac', %s, 'records/x/source', 1, sha256('x'), sha256('x'),
                'transcribe', 'whisper'
            FROM accounts, unnest(%s::uuid[]) AS made (id)
            """,
            (store.id, made),
        )
        cursor.execute("ANALYZE records")
