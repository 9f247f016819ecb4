"""The faults, each with the one test that must fail on it."""

from typing import Final

from attrs import frozen

CLAIMS: Final = "tests/storage/test_claims.py"
SETTLING: Final = "tests/storage/test_settling.py"
ATTEMPT: Final = "tests/daemon/test_attempt.py"
WORKER: Final = "tests/daemon/test_worker.py"

_GUARD: Final = "WHERE id = %(id)s AND claim_token = %(token)s"
_UNGUARDED: Final = "WHERE id = %(id)s"


@frozen
class Edit:
    """In `file`, what reads `old`, so many `times`, reads `new` instead."""

    file: str
    old: str
    new: str
    times: int = 1


@frozen
class Mutant:
    """A fault by name, how it is planted, and the test that must find it."""

    name: str
    killer: str
    edits: tuple[Edit, ...]


def _sql(name: str, old: str, new: str, times: int = 1) -> Edit:
    return Edit(f"storage/sql/{name}.sql", old, new, times)


MUTANTS: Final = (
    # Writes that anybody may make, whoever holds the record.
    Mutant(
        "a conversion is written by who lost its claim",
        f"{SETTLING}::test_s_c2_the_claim_went_to_another_and_nothing_is_written",
        (_sql("write_conversion", _GUARD, _UNGUARDED), _sql("end_reached", _GUARD, _UNGUARDED)),
    ),
    Mutant(
        "a deferring settle asks for no token",
        f"{SETTLING}::test_every_end_is_refused_however_the_claim_was_lost",
        (_sql("write_advance", _GUARD, _UNGUARDED), _sql("end_deferred", _GUARD, _UNGUARDED, 2)),
    ),
    Mutant(
        "a failure asks for no token",
        f"{SETTLING}::test_every_end_is_refused_however_the_claim_was_lost",
        (_sql("end_failed", _GUARD, _UNGUARDED),),
    ),
    Mutant(
        "a holder's stop asks for no token",
        f"{SETTLING}::test_every_end_is_refused_however_the_claim_was_lost",
        (_sql("end_stopped", _GUARD, _UNGUARDED),),
    ),
    Mutant(
        "a give-back asks for the record, not for the claim",
        f"{SETTLING}::test_give_backs_at_once_count_once",
        (
            _sql(
                "end_given_back",
                "WHERE claim_token = %(token)s",
                "WHERE id = (SELECT record_id FROM events WHERE token = %(token)s AND kind = 'claimed')",
            ),
        ),
    ),
    Mutant(
        "segments are written before anybody looked at the claim, and stay",
        f"{SETTLING}::test_every_end_is_refused_however_the_claim_was_lost",
        (
            Edit(
                "storage/settling.py",
                "    if written.rowcount == 0:\n        raise _NothingWrittenError\n",
                "",
            ),
            Edit(
                "storage/settling.py",
                "                raise _NothingWrittenError  #",
                "                return None  #",
            ),
        ),
    ),
    Mutant(
        "a settle is no transaction",
        f"{SETTLING}::test_findings_that_cannot_be_stored_are_refused_whole",
        (
            Edit(
                "storage/settling.py", "        async with connection.transaction():\n", "        if True:\n"
            ),
        ),
    ),
    Mutant(
        "a settle said again does not look for its own end",
        "tests/storage/test_lost_answers.py::test_s_s2_an_end_is_found_also_after_the_record_went_on",
        (_sql("end_found", "AND settles", "AND settles AND false"),),
    ),
    # The claim.
    Mutant(
        "the count does not grow at the claim",
        f"{CLAIMS}::test_a_record_that_takes_its_process_down_is_exhausted_as_well",
        (_sql("claim", "SET failures = held.failures + 1,", "SET failures = held.failures,"),),
    ),
    Mutant(
        "the claim overlooks the stop flag",
        f"{CLAIMS}::test_what_is_not_ready_is_not_claimed",
        (
            _sql("claim", "awake.stop_code IS NULL AND ", ""),
            _sql("claim", "due.stop_code IS NULL AND ", ""),
            _sql("claim", "exhausted.stop_code IS NULL AND ", ""),
            _sql("claim", "ready.stop_code IS NULL AND ", ""),
        ),
    ),
    Mutant(
        "the claim takes a record without locking it",
        f"{CLAIMS}::test_a_record_locked_by_an_edit_is_skipped_and_found_later",
        (_sql("claim", "    FOR UPDATE OF ready SKIP LOCKED\n", ""),),
    ),
    Mutant(
        "the claim forgets the order of creation",
        f"{CLAIMS}::test_a_long_line_is_taken_in_its_order",
        (_sql("claim", "    ORDER BY ready.created_at, ready.id\n", "    ORDER BY ready.id\n"),),
    ),
    Mutant(
        "the last attempt of the limit is not made",
        "tests/daemon/test_policy.py::test_a_record_within_its_limit_is_its_stage_s[3]",
        (
            Edit(
                "daemon/policy.py",
                "if record.failures > failures_limit:",
                "if record.failures >= failures_limit:",
            ),
        ),
    ),
    # Leases, and what wakes.
    Mutant(
        "a renewal revives what a person has lifted",
        f"{CLAIMS}::test_renewing_revives_nothing[_lift]",
        (
            _sql(
                "renew",
                "SET lease_until",
                "SET claim_token = (%(tokens)s::uuid[])[1], claimed_by = 'renewed', "
                "claimed_at = clock.now, lease_seconds = coalesce(lease_seconds, 60), lease_until",
            ),
            _sql("renew", "=> lease_seconds)", "=> coalesce(lease_seconds, 60))", 2),
            _sql(
                "renew",
                "WHERE claim_token = ANY (%(tokens)s)",
                "WHERE id IN (SELECT record_id FROM events "
                "WHERE token = ANY (%(tokens)s) AND kind = 'claimed')",
            ),
        ),
    ),
    Mutant(
        "a renewal goes by another number than the one written at the claim",
        f"{CLAIMS}::test_renewing_pushes_the_lease_by_the_stored_number",
        (_sql("renew", "=> lease_seconds)", "=> 60)", 2),),
    ),
    Mutant(
        "waking takes the claim from its holder",
        f"{CLAIMS}::test_waking_leaves_token_and_lease_alone",
        (
            _sql(
                "wake",
                "SET wake_at = NULL",
                "SET wake_at = NULL, claim_token = NULL, claimed_by = NULL, "
                "claimed_at = NULL, lease_seconds = NULL, lease_until = NULL",
            ),
        ),
    ),
    Mutant(
        "a lease counts from the answer, not from the question",
        "tests/daemon/test_keeper.py::test_a_renewal_counts_from_before_it_was_asked_for",
        (
            Edit(
                "daemon/keeper.py",
                "        renewed = await self._claims.renew(asked)\n",
                "        renewed = await self._claims.renew(asked)\n        asked_at = trio.current_time()\n",
            ),
        ),
    ),
    # What a person does.
    Mutant(
        "a lift needs no stop flag",
        "tests/storage/test_stopping.py::test_s_p9_a_second_lift_frees_nobodys_claim",
        (_sql("owner_lift", "AND stop_code IS NOT NULL AND", "AND"),),
    ),
    Mutant(
        "a deletion leaves its running claim counted",
        "tests/storage/test_stopping.py::test_a_deletion_takes_the_running_claim_off_the_count",
        (_sql("owner_delete", "        failures = failures - (claim_token IS NOT NULL)::integer,\n", ""),),
    ),
    # The attempt.
    Mutant(
        "a crash elsewhere in the process is given back",
        "tests/daemon/test_verdict.py::test_the_order_of_the_verdict[cancelled-crash-Failed]",
        (
            Edit(
                "daemon/verdict.py",
                "if around.stop_asked and around.ring_cancelled",
                "if around.ring_cancelled",
            ),
        ),
    ),
    Mutant(
        "a stop cuts a settle off",
        "tests/faults/test_cancellation.py::"
        "test_an_attempt_cancelled_at_any_of_its_steps_ends_once[given back-a stop]",
        (Edit("daemon/attempt.py", "shield=True) as patience", "shield=False) as patience"),),
    ),
    Mutant(
        "a stop leaves a claim that is on its way to nobody",
        f"{WORKER}::test_a_claim_in_flight_at_a_cancel_is_not_left_behind",
        (
            Edit(
                "daemon/worker.py",
                "with trio.CancelScope(shield=True):",
                "with trio.CancelScope(shield=False):",
            ),
        ),
    ),
    Mutant(
        "a claim whose answer was lost is left to its lease",
        f"{WORKER}::test_a_claim_whose_answer_was_lost_is_given_back_by_its_token",
        (Edit("daemon/worker.py", "            self.keeper.give_back_later(token)\n", ""),),
    ),
    Mutant(
        "an outage is counted against the records",
        "tests/daemon/test_lanes.py::test_s_p14_an_outage_closes_the_lane_and_not_the_records",
        (
            Edit(
                "daemon/lanes.py", "        if self._failures >= FAILURES_TO_CLOSE:\n", "        if False:\n"
            ),
        ),
    ),
    Mutant(
        "a suspended process sweeps what the next holder has made",
        "tests/daemon/test_workplace.py::test_a_suspended_process_sweeps_nothing_of_the_next_holder",
        (Edit("storage/audio.py", "if time.monotonic() >= until:", "if False:"),),
    ),
    Mutant(
        "a program that vanishes in a transaction keeps its record locked",
        "tests/storage/test_database.py"
        "::test_a_program_that_vanishes_in_mid_transaction_keeps_nothing_locked",
        (
            Edit(
                "storage/dsn.py",
                'idle_in_transaction_session_timeout={int(call_seconds * 1000)} "',
                'idle_in_transaction_session_timeout=0 "',
            ),
        ),
    ),
    Mutant(
        "an accept said again makes a second record, or an error",
        "tests/storage/test_submissions.py::test_s_i5_an_unknown_commit_is_looked_up[cuts0]",
        (_sql("submission_accepted", "    ON CONFLICT (id) DO NOTHING\n", ""),),
    ),
)
