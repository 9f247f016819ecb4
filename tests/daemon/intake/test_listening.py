"""The audio, whole and in parts."""

import io
import math
import wave
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import numpy as np
import structlog

from daemon.intake import listening
from stages.media.wave64 import Writer
from storage.listening import give_up_making, publish_made, take_making
from tests.daemon.intake.conftest import Doors
from tests.making import a_record, change, put

Problem = Callable[[httpx.Response, int, str], str]
SAMPLES = np.arange(400_000, dtype=np.int64).astype(np.int16)
SIZE = 44 + 2 * len(SAMPLES)


async def a_recording(doors: Doors, sides: int = 1) -> tuple[UUID, Path]:
    """Return a record that is decoded, and its copy."""
    record_id = await a_record(doors.database, doors.store, doors.anna, filename="Разговор.m4a")
    token = uuid4()
    copy = await doors.store.attempt_folder(record_id, token) / "audio.w64"
    with Writer(copy, sides) as writer:
        writer.write(SAMPLES.reshape(-1, sides).T)
        writer.finish()
    path = f"records/{record_id}/{token}/audio.w64"
    await change(
        doors.database, record_id, f"milestone = 'converted', lane = 'whisper', audio_path = '{path}'"
    )
    return record_id, copy


async def test_the_audio_is_a_wav_that_anybody_can_read(doors: Doors) -> None:
    """The very samples that were decoded."""
    record_id, _ = await a_recording(doors)
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{record_id}/audio")
        head = await client.head(f"/v1/records/{record_id}/audio")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/wav")
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-disposition"].startswith("inline; filename*=UTF-8''%D0%A0")
    assert (len(answer.content), head.headers["content-length"], head.content) == (SIZE, str(SIZE), b"")
    with wave.open(io.BytesIO(answer.content)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (16_000, 1, 2)
        assert sound.readframes(len(SAMPLES) + 1) == SAMPLES.tobytes()


async def test_the_sides_of_a_call_are_heard_on_their_own_ears(doors: Doors) -> None:
    """A copy of two sides is a stereo WAV of half the length."""
    record_id, _ = await a_recording(doors, sides=2)
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{record_id}/audio")
    with wave.open(io.BytesIO(answer.content)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getnframes()) == (16_000, 2, 200_000)
        assert sound.readframes(200_001) == SAMPLES.tobytes()


PARTS = (
    ("bytes=0-1", 0, 2),
    ("bytes=0-43", 0, 44),
    ("bytes=43-44", 43, 2),
    ("bytes=-500", SIZE - 500, 500),
    (f"bytes={SIZE - 1}-", SIZE - 1, 1),
    ("bytes=100-400000", 100, 399_901),
    (f"bytes=10-{10**18}", 10, SIZE - 10),
)


async def test_a_part_is_that_part(doors: Doors) -> None:
    """Byte for byte, wherever it begins and ends."""
    record_id, _ = await a_recording(doors)
    async with doors.client() as client:
        whole = (await client.get(f"/v1/records/{record_id}/audio")).content
        for range_, first, length in PARTS:
            answer = await client.get(f"/v1/records/{record_id}/audio", headers={"Range": range_})
            assert answer.status_code == 206
            assert answer.headers["content-range"] == f"bytes {first}-{first + length - 1}/{SIZE}"
            assert answer.content == whole[first : first + length]


async def test_ranges_that_are_none_and_ones_past_the_end(doors: Doors, problem: Problem) -> None:
    """The whole for the former, a 416 with the size for the latter; If-Range and If-None-Match are heeded."""
    record_id, _ = await a_recording(doors)
    async with doors.client() as client:
        path = f"/v1/records/{record_id}/audio"
        for range_ in ("bytes=5-1", "bytes=0-1,4-5", "bytes=x", "lines=1-2", "bytes=" + "9" * 5000 + "-"):
            assert (await client.get(path, headers={"Range": range_})).status_code == 200, range_[:30]
        for range_ in (f"bytes={SIZE}-", f"bytes={10**18}-", "bytes=-0"):
            answer = await client.get(path, headers={"Range": range_})
            problem(answer, 416, "range_not_satisfiable")
            assert answer.headers["content-range"] == f"bytes */{SIZE}"
        etag = (await client.head(path)).headers["etag"]
        for condition, status in ((etag, 206), ('"other"', 200), ("Mon, 30 Nov 2026 22:00:00 GMT", 200)):
            given = {"Range": "bytes=0-1", "If-Range": condition}
            assert (await client.get(path, headers=given)).status_code == status
        assert (await client.get(path, headers={"If-None-Match": etag})).status_code == 304


async def test_audio_that_is_not_there_yet_or_not_here(doors: Doors, problem: Problem) -> None:
    """Each with its reason; a copy that is gone is a fault of ours, told once in the log."""
    waiting = await a_record(doors.database, doors.store, doors.anna)
    record_id, copy = await a_recording(doors)
    async with doors.client() as client:
        problem(await client.get(f"/v1/records/{waiting}/audio"), 409, "not_ready")
        copy.write_bytes(copy.read_bytes()[:-8])
        with structlog.testing.capture_logs() as logged:
            problem(await client.get(f"/v1/records/{record_id}/audio"), 500, "internal_error")
        assert [entry["event"] for entry in logged] == ["request.failed"]
        [other] = await put(doors.database, "INSERT INTO stores (id) VALUES (gen_random_uuid()) RETURNING id")
        await change(
            doors.database, waiting, f"audio_path = 'records/x/y/audio.w64', store_id = '{other[0]}'"
        )
        problem(await client.get(f"/v1/records/{waiting}/audio"), 409, "elsewhere")


def test_a_wav_past_its_limit_does_not_lie_about_it() -> None:
    """37 hours and more do not fit into its fields, which then hold the most they can."""
    head = listening.wav_head(2**32, 1)
    assert (head[4:8], head[40:44]) == (b"\xff" * 4, b"\xff" * 4)
    assert listening.wav_head(1000, 2)[40:44] == (1000).to_bytes(4, "little")


async def a_made(doors: Doors, content: bytes = bytes(range(256)) * 40) -> tuple[UUID, Path]:
    """Return a record whose listening copy and peaks are made, and the copy."""
    record_id, _ = await a_recording(doors)
    making = await take_making(doors.database, doors.store)
    assert making is not None
    folder = await doors.store.listening_folder(record_id, making.token, until=math.inf)
    (folder / "listening.mp3").write_bytes(content)
    path = str((folder / "listening.mp3").relative_to(doors.store.root))
    assert await publish_made(doors.database, making, path, "audio/mpeg", b"\x80\x7f\x00\x01")
    return record_id, folder / "listening.mp3"


async def test_the_listening_copy_comes_whole_and_in_parts(doors: Doors, problem: Problem) -> None:
    """As the decoded audio does, under its own tag, name and kind."""
    record_id, copy = await a_made(doors)
    path, whole = f"/v1/records/{record_id}/audio?copy=listening", copy.read_bytes()
    async with doors.client() as client:
        answer = await client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/mpeg")
        assert answer.content == whole
        assert answer.headers["content-disposition"].endswith(".mp3")
        assert answer.headers["x-content-type-options"] == "nosniff"
        tag = answer.headers["etag"]
        decoded = await client.get(
            f"/v1/records/{record_id}/audio?copy=decoded", headers={"Range": "bytes=0-3"}
        )
        assert (decoded.content, decoded.headers["etag"] == tag) == (b"RIFF", False)
        for range_, first, length in (
            ("bytes=0-0", 0, 1),
            ("bytes=100-9999", 100, 9900),
            ("bytes=-5", 10_235, 5),
        ):
            part = await client.get(path, headers={"Range": range_})
            assert part.status_code == 206
            assert part.content == whole[first : first + length]
            assert part.headers["content-range"] == f"bytes {first}-{first + length - 1}/10240"
        assert (await client.get(path, headers={"If-None-Match": tag})).status_code == 304
        past = await client.get(path, headers={"Range": "bytes=10240-"})
        assert problem(past, 416, "range_not_satisfiable")
        assert (await client.get(path, headers={"Range": "bytes=0-1", "If-Range": '"x"'})).status_code == 200


async def test_a_source_that_plays_everywhere_is_what_is_heard(doors: Doors) -> None:
    """Its own bytes, under the kind that was found in them."""
    record_id, _ = await a_recording(doors)
    making = await take_making(doors.database, doors.store)
    assert making is not None
    await publish_made(doors.database, making, making.source_path, "audio/mp4", b"")
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{record_id}/audio?copy=listening")
    assert (answer.content, answer.headers["content-type"]) == (
        doors.store.source(record_id).read_bytes(),
        "audio/mp4",
    )
    assert answer.headers["content-disposition"].endswith(".m4a")


async def test_the_peaks_are_numbers(doors: Doors) -> None:
    """Signed, in the order of the audio, and asked for again only when they changed."""
    record_id, _ = await a_made(doors)
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{record_id}/peaks")
        assert answer.json() == {"seconds": None, "peaks": [-128, 127, 0, 1]}
        tag = {"If-None-Match": answer.headers["etag"]}
        assert (await client.get(f"/v1/records/{record_id}/peaks", headers=tag)).status_code == 304


async def test_what_is_not_made_yet_or_never_is_told(doors: Doors, problem: Problem) -> None:
    """Before the decoding, before the making, after one that was given up; the decoded audio is there."""
    raw = await a_record(doors.database, doors.store, doors.anna)
    record_id, _ = await a_recording(doors)
    paths = ("audio?copy=listening", "peaks")
    async with doors.client() as client:
        for path in paths:
            assert problem(await client.get(f"/v1/records/{raw}/{path}"), 409, "not_ready")
            assert problem(await client.get(f"/v1/records/{record_id}/{path}"), 409, "not_ready")
            assert problem(await client.get(f"/v1/records/{uuid4()}/{path}"), 404, "not_found")
        making = await take_making(doors.database, doors.store)
        assert making is not None
        await give_up_making(doors.database, making, "a secret of the machine")
        for path in paths:
            answer = await client.get(f"/v1/records/{record_id}/{path}")
            assert "secret" not in problem(answer, 409, "no_listening_copy")
        assert (await client.get(f"/v1/records/{record_id}/audio")).status_code == 200


async def test_a_copy_that_is_gone_is_wanted_again(doors: Doors, problem: Problem) -> None:
    """Whoever finds that out is told to come again, and the next making is due."""
    record_id, copy = await a_made(doors)
    copy.unlink()
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{record_id}/audio?copy=listening")
    assert problem(answer, 409, "not_ready")
    making = await take_making(doors.database, doors.store)
    assert making is not None
    assert making.record_id == record_id
