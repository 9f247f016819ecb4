"""The database, as the service would find it: it is neither started nor brought up to date for the check."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta

from attrs import frozen

from daemon.doctor.finding import Finding, fault, fault_of, note, ok
from daemon.doctor.places import holder_of
from daemon.settings import Settings
from storage.binaries import installed_binaries
from storage.cluster import cluster_home
from storage.database import Database, open_database, open_loop
from storage.embedded import running_dsn
from storage.errors import RubezhError
from storage.folder import StateFolder
from storage.health import SECONDS, Schema, Server, StoreState, read_schema, read_server, read_store

_POOL = 2
_LOOK = "see whether PostgreSQL runs, its log, and whether this user may use it"
_MOST_APART = timedelta(seconds=5)
_NOT_BEFORE = datetime(2025, 1, 1, tzinfo=UTC)  # a clock that is before this program's time was never set


@frozen
class Reached:
    """The database, if it could be reached, and what was found on the way."""

    database: Database | None
    findings: tuple[Finding, ...]


@asynccontextmanager
async def reached(settings: Settings, folder: StateFolder) -> AsyncIterator[Reached]:
    """Open the database that the service works on, if it runs."""
    async with open_loop(), AsyncExitStack() as stack:
        yield await _reach(settings, folder, stack)


async def _reach(settings: Settings, folder: StateFolder, stack: AsyncExitStack) -> Reached:
    try:
        dsn = settings.database.dsn or await running_dsn(folder)
        if dsn is None:
            return Reached(None, (_check_resting(folder),))
        opening = open_database(
            dsn,
            pool_size=_POOL,
            call_seconds=min(SECONDS, settings.database.call_seconds),
            statement_seconds=min(SECONDS, settings.database.statement_seconds),
            listen=settings.database.listen,
        )
        database = await stack.enter_async_context(opening)
        server = await read_server(database)
    except (RubezhError, OSError) as error:
        return Reached(None, (fault_of("database", error, _LOOK),))
    which = "that the settings name" if settings.database.dsn else "of the state folder"
    return Reached(database, (judge_server(server, which), judge_clock(server.now, datetime.now(UTC))))


async def check_data(database: Database, folder: StateFolder) -> tuple[Finding, ...]:
    """Look at what is in the database, and whether the store belongs to it."""
    try:
        schema = await read_schema(database)
    except RubezhError as error:
        return (fault_of("schema", error, _LOOK),)
    finding = judge_schema(schema)
    try:
        if schema.reached is None or not folder.store.exists():
            return (finding,)
        store = judge_store(folder, await read_store(database, folder.store))
    except (RubezhError, OSError) as error:
        store = fault_of("store", error, "restore the store that belongs to this database")
    return finding, store


def judge_server(server: Server, which: str) -> Finding:
    """Say whether the server serves."""
    told = f"PostgreSQL {server.version}, the one {which}"
    if not server.takes_writes:
        return fault(
            "database",
            f"{told}, takes no writes",
            "name the primary in database.dsn, or end its read-only mode",
        )
    return ok("database", told)


def judge_clock(theirs: datetime, ours: datetime) -> Finding:
    """Say whether the clocks of this machine and of the database can both be believed."""
    remedy = "set the clock, and have it kept: timedatectl set-ntp true"
    if ours < _NOT_BEFORE:
        return fault("clock", f"this machine believes that it is {ours:%Y-%m-%d}", remedy)
    apart = abs(theirs - ours)
    if apart > _MOST_APART:
        return fault(
            "clock",
            f"this machine and the database are {apart.total_seconds():.0f} s apart",
            f"on both: {remedy}",
        )
    return ok("clock", f"{ours:%Y-%m-%d %H:%M:%S} UTC, and the database agrees")


def judge_schema(schema: Schema) -> Finding:
    """Say whether this program can work with the schema."""
    if schema.reached is None:
        return note("schema", "the database is empty", "nothing to do: the first start makes the schema")
    if schema.reached > schema.known:
        return fault(
            "schema",
            f"the database has schema {schema.reached}, newer than the {schema.known} this program knows",
            "install the newer program, or restore a backup made before it",
        )
    if schema.reached < schema.known:
        return note(
            "schema",
            f"the database has schema {schema.reached} of {schema.known}",
            "make a backup; the next start brings it up to date",
        )
    return ok("schema", f"{schema.reached}, as this program knows it")


def judge_store(folder: StateFolder, state: StoreState) -> Finding:
    """Say whether store and database belong together."""
    if state.store is None:
        return note("store", f"{folder.store} is empty", "nothing to do: the next start makes it a store")
    if not state.is_of_this_installation:
        return fault(
            "store",
            f"{folder.store} belongs to another installation than the database",
            "set the state folder, or database.dsn, that goes with the other",
        )
    if not state.is_known:
        return fault(
            "store",
            f"the database does not know the store {folder.store} ({state.store})",
            "restore the database it belongs to, or give this one an empty folder",
        )
    return ok("store", f"{folder.store} ({state.store})")


def _check_resting(folder: StateFolder) -> Finding:
    """Look at an embedded PostgreSQL that does not run."""
    programs = installed_binaries()
    if not folder.path.exists():
        return note(
            "database",
            f"the embedded PostgreSQL {programs.version} has no data yet",
            "nothing to do: the first start makes it",
        )
    home = cluster_home(folder.postgres)
    if (holder := holder_of(folder)) is not None:
        return fault(
            "database",
            f"process {holder} holds the state folder, and its PostgreSQL does not answer",
            f"if it is not just starting, see {home.log}",
        )
    if not home.data.exists():
        return note(
            "database",
            f"the embedded PostgreSQL {programs.version} has no data yet",
            "nothing to do: the first start makes it",
        )
    try:
        found = (home.data / "PG_VERSION").read_text(encoding="ascii").strip()
    except OSError as error:
        return fault(
            "database", f"{home.data} holds no PostgreSQL cluster ({error.strerror})", "put the cluster back"
        )
    if found != programs.major:
        return fault(
            "database",
            f"the data in {home.data} is PostgreSQL {found}'s and ours is {programs.major}",
            "move it with pg_upgrade or with pg_dump, or install the version it was made by",
        )
    return note(
        "database",
        f"the embedded PostgreSQL {programs.version} does not run: schema, store and clock are not known",
        "start the service and ask again",
    )
