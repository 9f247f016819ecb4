"""Every error of ours, by who is to blame.

::

    RubezhError
    ├── Refused                  yours: the input, a setting, a folder; told in one sentence, exit code 2
    │   ├── SettingsRefused
    │   ├── StateFolderRefused   somebody else's, or out of reach
    │   ├── DatabaseRefused      newer schema, too old a server, another installation's store
    │   └── SubmissionRefused    carries the stable `code` that the intake answers with
    ├── Unavailable              the world's: it may pass, try again later
    │   ├── DatabaseUnavailable
    │   │   └── DatabaseUnreached    nothing was sent, so nothing was written
    │   ├── EmbeddedPostgresFailed
    │   ├── StateFolderInUse
    │   ├── NoSpace
    │   └── MeansAway            what a lane needs is away for everybody (recogniser, model, disk)
    ├── StageFailed              a stage came to no outcome, and its text says all there is to know
    └── DataRefused              the database refused a value for what it is (SQLSTATE class 22 or 23)

"No work", "not found" and a lost claim are no errors: they are values (`storage.claim`), so that no
wrapper on the way can turn one into the other. A fault of our own stays a plain Python exception
and ends the service.
"""


class RubezhError(Exception):
    """An error whose text is one clear sentence with its cause and, where there is one, its remedy."""


class Refused(RubezhError):
    """What we were given cannot be used; trying again unchanged cannot help."""


class SettingsRefused(Refused):
    """The settings do not make sense; the text names every fault, a line each."""


class StateFolderRefused(Refused):
    """The state folder is somebody else's, or out of reach."""


class DatabaseRefused(Refused):
    """The database is not one this version may work with."""


class SubmissionRefused(Refused):
    """A submission cannot be accepted; `code` is the stable word of the intake contract."""

    def __init__(self, code: str, sentence: str) -> None:
        """Keep the stable `code` beside the sentence for a person."""
        super().__init__(sentence)
        self.code = code


class Unavailable(RubezhError):
    """Something outside is away; nothing is wrong with the record."""


class DatabaseUnavailable(Unavailable):
    """PostgreSQL cannot be reached, or cannot serve just now; the outcome of a write may be unknown."""


class DatabaseUnreached(DatabaseUnavailable):
    """No connection could be had in time: nothing was sent, and nothing was written."""


class EmbeddedPostgresFailed(Unavailable):
    """Our own PostgreSQL did not start, or died."""


class StateFolderInUse(Unavailable):
    """Another process owns the state folder; it may end, and a service manager may try again."""


class NoSpace(Unavailable):
    """The disk that holds the store is full."""


class MeansAway(Unavailable):
    """What a lane needs is away for every record alike."""


class StageFailed(RubezhError):
    """A stage came to no outcome in a way it knows: the text is enough, no traceback would add to it.

    `fault` is a word of the stage's own, for its next attempt on the record.
    """

    fault: str | None = None


class DataRefused(RubezhError):
    """The database refused a value for its content: never cured by trying again."""
