"""Whether an account may bring more: not while it has more in the queue than its share."""

from http import HTTPStatus

from daemon.intake.doors import Doors
from daemon.intake.problems import come_again
from storage.account import Account
from storage.submissions import queued_seconds

_HOUR = 3600.0
_RETRY_QUEUED = 60


async def admit(doors: Doors, account: Account) -> None:
    """Raise Problem while the account has its hours in the queue; who come at once see the same hours."""
    most = doors.settings.queued_hours
    if not most:
        return
    hours = await queued_seconds(doors.database, account.id) / _HOUR
    if hours >= most:
        detail = (
            f"This account has {hours:.1f} hours of audio in the queue, and {most:g} is the most; "
            "send more when some of them are done."
        )
        raise come_again(HTTPStatus.TOO_MANY_REQUESTS, "queue_full", detail, _RETRY_QUEUED)
