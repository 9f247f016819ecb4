"""Where the database is, and what is asked of every connection to it."""

import psycopg
import psycopg.conninfo

from storage.errors import DatabaseRefused

_SERVER_KEEPALIVES = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
_READ_COMMITTED = r"-c default_transaction_isolation=read\ committed"


def whole_dsn(dsn: str, statement_seconds: float, call_seconds: float) -> str:
    """Return a DSN with all that we ask of a connection; raises DatabaseRefused for what is none."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(dsn)
        # The claim stands on read committed, and times are read as UTC, whatever the server's defaults. The
        # server must not wait for hours for a program that stands still or has vanished in a transaction.
        ours = (
            f"-c statement_timeout={int(statement_seconds * 1000)} "
            f"-c idle_in_transaction_session_timeout={int(call_seconds * 1000)} "
            f"{_SERVER_KEEPALIVES} -c timezone=UTC {_READ_COMMITTED}"
        )
        return psycopg.conninfo.make_conninfo(
            dsn,
            options=f"{given.get('options') or ''} {ours}".strip(),
            application_name=given.get("application_name") or "rubezh",
            connect_timeout=given.get("connect_timeout") or 5,
            keepalives_idle=given.get("keepalives_idle") or 10,
            tcp_user_timeout=given.get("tcp_user_timeout") or 20_000,
        )
    except psycopg.ProgrammingError as error:
        message = f"database.dsn is not a PostgreSQL connection string ({str(error).strip()})"
        raise DatabaseRefused(message) from error


def away_from(dsn: str, cause: str) -> str:
    """Say in a sentence which server cannot be reached, and why."""
    where = psycopg.conninfo.conninfo_to_dict(dsn)
    host, name = where.get("host") or "the local socket", where.get("dbname") or "the default database"
    why = " ".join(cause.split())
    return f"PostgreSQL at {host}, {name}, cannot be reached ({why}); start it or set database.dsn"
