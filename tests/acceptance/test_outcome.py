"""The outcome is learnt by asking: in the readiness poll, never by a call of ours."""

from pathlib import Path

from tests.acceptance.rig import Rig, eventually


def test_s_a1_the_text_is_told_to_whoever_asks(rig: Rig, model: Path, sample: bytes, reference: str) -> None:
    """A finished record's text is in the answer to its owner's poll, and no stage speaks to anybody else."""
    del model
    daemon = rig.start()
    token = rig.account()
    record_id = daemon.submit(token, sample, language="en")
    eventually(lambda: daemon.poll(token, record_id)["milestone"] == "done", "the record is done")
    shown = daemon.poll(token, record_id)
    assert shown["text"] == reference
    assert shown["stopped"] is False
    assert shown["failures"] == 0
    assert shown["progress"]["fraction"] == 1.0


def test_s_a2_a_stop_is_seen_by_asking_and_told_in_the_log(rig: Rig) -> None:
    """A record whose failures ran out shows its milestone and its flag; the owner's log has the reason."""
    daemon = rig.start(*rig.odd("failing"))
    token = rig.account()
    record_id = daemon.submit(token, b"anything")
    eventually(lambda: daemon.poll(token, record_id)["stopped"], "the record is stopped")
    shown = daemon.poll(token, record_id)
    assert shown["milestone"] == "created"
    assert shown["stop"]["code"] == "attempts_exhausted"
    assert "ValueError" not in shown["stop"]["message"]  # internal detail is the service owner's
    [entry] = daemon.entries("record.stopped")
    assert entry["record"] == str(record_id)
    assert "this stage always fails" in entry["reason"]
    assert len(daemon.entries("record.failed")) == 5
