"""What to do about an event of the log, for the service owner: in the journal's catalog and in the manual.

Events that are not here ask for nothing. Whole sentences; `rubezh` stands for the program as it is installed.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from storage.record import StopCode

_REPORT = "A bug report with this entry is welcome."

REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # For a person, now.
        "record.stopped": (
            "The remedy depends on the code of the stop; once the cause is removed: rubezh records lift ID."
        ),
        "lane.closed": (
            "None is stopped for it. Mend what the reason names; the lane then opens by "
            "itself within a minute. rubezh doctor checks model, folders and space."
        ),
        "database.away": (
            "See whether PostgreSQL runs (rubezh doctor; for the embedded one postgres/log in the state "
            "folder). Work under way ends before its lease does, and nothing is lost."
        ),
        "watchdog.withheld": (
            "systemd restarts the service. Keep the log from before this entry for a bug report."
        ),
        "settle.given_up": (
            "Nothing to do for the record: the attempt's work is done again. See why the database was "
            "away for longer than work.settle_seconds, or, after a crash, work.exit_seconds."
        ),
        "settings.refused": (
            "Nothing was changed. The reason names each fault: mend the file and reload again, or "
            "restart the service for what cannot change while it runs."
        ),
        "settings.unanswered": (
            "The state folder could not be written; `rubezh reload` waits in vain. Make room in it."
        ),
        "service.ended_hard": (
            "What was owed is on disk and given back at the next start. Mostly the database did not "
            "answer: see whether it runs."
        ),
        "give_back.unwritten": (
            "Make the state folder writable. The records are ready again when their leases have run out."
        ),
        "watch.stuck": (
            "A folder has to have the name of an account that is not disabled, and the user of the service "
            "has to be allowed to read it and to write into it; under systemd, ReadWritePaths= as well. A "
            "file that could not be read or moved is tried again when it is touched."
        ),
        # Failures that the service deals with itself.
        "record.failed": ("If it repeats, the reason, and the traceback if there is one, have the cause."),
        "slice.given_up": (
            "The entries before it have the cause. Nothing to do if it is one place of one recording; where "
            "it repeats, the machine is too small for the model, or the model is damaged."
        ),
        "watch.refused": "Beside the file lies a text that says why.",
        "watch.waits": (
            "Nothing to do for the file. Where the reason is space, make some; where it is the account's "
            "hours in the queue, wait for them."
        ),
        "record.timed_out": (
            "If it repeats, the machine is too small for the model, or the recogniser hangs."
        ),
        "record.cleanup_failed": _REPORT,
        "audio.mended": (
            "Nothing to do for the record. A disk that loses what it said it had, or a hand in the store, is "
            "behind it: look at both, and at backups."
        ),
        "listening.failed": (
            "Nothing to do for the record: its text is not concerned, and its audio is heard as WAV. The "
            "reason has what went wrong."
        ),
        "claim.lost": (
            "Somebody stopped, lifted or deleted the record, or another daemon took it after the lease "
            "ran out. Often without a person's doing: raise the lease, or look for pauses of the "
            "machine."
        ),
        "settle.refused_for_data": (
            "A result held something that PostgreSQL cannot store. If it repeats, the record is stopped "
            "after its limit; the reason has what was refused."
        ),
        "give_back.owed": "Nothing to do: it is given back then.",
        "submission.refused": (
            "Nothing to do if its account was removed meanwhile; the cause says. Otherwise a bug report is "
            "welcome."
        ),
        "upload.gone": (
            "See who took files out of uploads/ in the store, or whether the disk loses them. The sender was "
            "told to begin anew."
        ),
        "removal.failed": "See whether the store's disk is mounted read-only or failing.",
        "tokens.refused": "A sender has an old token, or somebody tries. Shut the address out if it goes on.",
        "submission.unresolved": (
            "Nothing to do: the sender was told to ask again, and the bytes are put aside after two "
            "days if no row knows them. See why the database went away."
        ),
        "store.full": "Make room on the disk of the store. Senders are told 507 until then.",
        "request.failed": f"The traceback has the cause. {_REPORT}",
        "connection.failed": "Nothing to do unless it is frequent.",
        "bell.silent": (
            "Nothing to do if it passes. Behind a pooler in transaction mode set database.listen = false."
        ),
        "leftover.quarantined": (
            "Expected after an older dump was restored: the bytes are kept for 30 days in quarantine/ "
            "of the store. Otherwise see whether the service uses the right database."
        ),
        "leftover.returned": "Nothing to do.",
        "leftover.removed": "Nothing to do: it was an unfinished upload, or had its days in quarantine.",
        "leftovers.unswept": "Nothing to do.",
        "postgres.forced": (
            "Nothing to do: it repairs itself at the next start. postgres/log in the state folder tells "
            "what kept it."
        ),
        "systemd.unreachable": (
            "systemd may believe that the service never started, or hangs. See the unit's Type= "
            "(notify) and NotifyAccess= (main)."
        ),
        "journal.dropped": (
            "See why journald was slow or away. What happened to a record is also in its history: "
            "rubezh records events ID."
        ),
        "library.warned": (
            "Its own words are in the entry; the same within a minute is counted in the next one's repeated. "
            "Nothing to do unless it goes on; for 'Too many open files' raise LimitNOFILE= of the unit."
        ),
    }
)

STOP_REMEDIES: Final[Mapping[StopCode, str]] = MappingProxyType(
    {
        StopCode.ATTEMPTS_EXHAUSTED: (
            "Every attempt failed; the reason names the last cause, and the record.failed entries of "
            "this record have all of them. Remove the cause, then: rubezh records lift ID."
        ),
        StopCode.OVERDUE: (
            "It was in progress for longer than its length explains. See whether the recogniser hangs "
            "or the machine is overloaded, then: rubezh records lift ID."
        ),
        StopCode.NOT_MEDIA: (
            "This is about the recording. Its sender is told to check that it plays, and to send it again."
        ),
        StopCode.NO_AUDIO: "This is about the recording. Its sender is told to send a file with sound.",
        StopCode.TOO_LONG: "Raise convert.longest_hours and lift the stop, or have its sender cut it.",
        StopCode.SILENT: (
            "This is about the recording. Its sender is told to check the microphone and the track."
        ),
        StopCode.INCOMPLETE_RECOGNITION: (
            "Too much of the speech did not become text. See the slices' entries, choose another model "
            "if it repeats, then: rubezh records lift ID."
        ),
        StopCode.RECOGNISER_REFUSED: (
            "The reason has the recogniser's own words. Its sender may have asked for a language that "
            "it does not know."
        ),
        StopCode.STOPPED_BY_OWNER: "A person stopped it. To have it go on: rubezh records lift ID.",
        StopCode.AUDIO_MISSING: (
            "The store is there and the file is not. Restore store/ from a backup and lift the stop, or "
            "have the recording sent again."
        ),
    }
)
