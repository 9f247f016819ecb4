"""Makes what a stage is handed, without a database."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from stages.stage import Children, Tools
from storage.record import Milestone, Record

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def a_record(**changes: Any) -> Record:
    """Return a claimed record with the given fields."""
    given: dict[str, Any] = {
        "id": uuid4(),
        "owner_id": uuid4(),
        "created_at": NOW,
        "title": "A talk",
        "description": "",
        "topics": (),
        "asked_language": None,
        "edition": 1,
        "filename": "talk.mp3",
        "channels": "auto",
        "track": None,
        "hotwords": "",
        "translate": False,
        "store_id": uuid4(),
        "source_path": "records/x/source",
        "source_bytes": 1000,
        "source_sha256": bytes(32),
        "milestone": Milestone.TRANSCRIBE,
        "milestone_since": NOW,
        "milestone_seconds": 0.0,
        "lane": "whisper",
        "failures": 1,
        "claim_token": uuid4(),
        "lease_until": NOW,
        "stop": None,
        "deleted_at": None,
        "audio_path": "records/x/y/audio.w64",
        "declared_seconds": None,
        "decoded_seconds": 60.0,
        "audio_warnings": (),
        "recogniser": None,
        "operation": None,
        "found_language": None,
        "recognised_seconds": 0.0,
        "recognised_text": None,
    }
    return Record(**{**given, **changes})


def a_workplace(audio: Path | None, children: Children, root: Path | None = None) -> Tools:
    """Return the tools of one attempt in a store at `root`, or beside the audio."""
    store = root or (audio or Path("/nowhere")).parent / "store"
    token = uuid4()
    folder = store / "records" / str(uuid4()) / str(token)
    folder.mkdir(parents=True)
    (store / "store.json").write_text("{}")
    return Tools(
        source=folder.parent / "source",
        audio=audio,
        folder=folder,
        children=children,
        token=token,
        last_fault=None,
        attempts_left=4,
    )
