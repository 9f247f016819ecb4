"""Every event the log may hold, in one place: a dotted noun with a past verb, and what it means."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

EVENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # The service as a whole.
        "service.started": "every part runs and records are claimed",
        "doors.opened": "the doors take requests at these addresses",
        "service.stopping": "a stop was asked for: no new claims, what runs has the grace to end",
        "settings.adopted": "the settings were read again, and what was changed holds from now on",
        "settings.refused": "the settings were read again and cannot be had; those from before hold",
        "settings.unanswered": "what came of a reading of the settings could not be left for whoever asked",
        "service.second_signal": "a second signal came during the grace: the work is cancelled at once",
        "service.stopped": "everything is given back and closed",
        "farewell.unheard": "the database could not be told that this run has ended; it will look dead",
        "service.ended_hard": "the time of a stop was over with something undone; the process ended at once",
        "worker.started": "a worker began to claim",
        # One record's way.
        "submission.accepted": "a recording is on disk and in the database; its sender has the id",
        "submission.broken_off": "a sender went away in the middle of a recording; nothing of it is kept",
        "submission.unresolved": "whether a recording's row was committed is unknown; its bytes are kept",
        "upload.begun": "a resumable upload was begun; it becomes a record with its last byte",
        "upload.broken_off": "a sender went away in the middle of an upload; what came is kept for its return",
        "upload.uncounted": "what came of an upload could not be counted; it will be sent again",
        "upload.undropped": "an upload could not be given up; the end of its lease does that",
        "upload.gone": "bytes of an upload that were counted are not in the store any more",
        "key.unrenewed": "the lease of an idempotency key could not be renewed; it is tried again",
        "key.unreleased": "an idempotency key could not be let go of; the end of its lease does that",
        "answer.unkept": "the answer to an accepted submission could not be kept for its repetition",
        "store.full": "the disk of the store has no room, and a recording was turned away",
        "request.failed": "a request ended in an error of ours; its sender got a 500",
        "connection.failed": "a connection of the doors ended in an error; the others go on",
        "record.claimed": "a worker took the record and starts its next stage",
        "record.reached": "a stage succeeded: the record is at its next milestone",
        "audio.converted": "a recording was decoded; its lengths, and what a person should know of it",
        "slice.recognised": "a slice of a recording became text",
        "record.deferred": "a stage ended well with more to do later",
        "record.failed": "a stage failed; the record is tried again later",
        "record.timed_out": "an attempt took longer than it may and was ended; it counts as a failure",
        "record.cleanup_failed": "an attempt was over and its cleaning up failed; its end stands",
        "record.given_back": "an attempt was cut off by the stop of the service and is not counted",
        "record.stopped": "the record is out of work until a person lifts its stop flag",
        # Claims and settles.
        "claim.lost": "the claim is no longer this attempt's own; nothing was written",
        "claim.answer_lost": "the answer to a claim did not come; it is given back by its token",
        "settle.answer_lost": "the answer to a settle did not come; it is looked up by its token",
        "settle.given_up": "the database stayed away too long for a result to wait; the work is lost",
        "settle.refused_for_data": "the database refused a result for its content; it counts as a failure",
        "give_back.owed": "a give-back could not reach the database and is left for the next start",
        "give_back.unwritten": "what is owed could not be written down; those attempts stay counted",
        "give_back.repaid": "a give-back owed by an earlier run is done",
        "keeper.renewed": "the leases of running attempts were renewed",
        # Means.
        "lane.closed": "what a lane needs is away for every record; its records wait",
        "lane.opened": "what a lane needs is back; its records go on",
        "database.away": "the database cannot be reached; said once for the whole outage",
        "database.returned": "the database can be reached again",
        "postgres.made": "a new database cluster was made in the state folder",
        "postgres.awaited": "the last processes of an earlier PostgreSQL still end; the start waits for them",
        "postgres.started": "our own PostgreSQL serves",
        "postgres.forced": "our own PostgreSQL did not end in its time and was killed",
        "queue.uncounted": "the queue's numbers could not be read just now; /metrics goes without them",
        "bell.silent": "notifications do not arrive; new work is found by polling alone",
        "leftover.removed": "files that belong to nothing were removed from the store",
        "leftover.quarantined": "the store has a record that no row knows; it is put aside for days",
        "leftover.returned": "a record put aside is known again and is back in its place",
        "leftovers.unswept": "the store could not be swept just now; it is tried again later",
        # The machinery.
        "watchdog.withheld": "a part has gone silent; systemd is no longer told that all is well",
        "systemd.unreachable": "systemd could not be told something",
        "journal.dropped": "entries were lost because the log could not take them",
        "library.warned": "a library we use had something to say",
    }
)
