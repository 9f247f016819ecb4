"""What is true of a recording is what comes out of the decoding, whatever its header, name or damage says."""

import errno
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stages.media.decode import decode
from stages.media.messages import Channels, Finished, Request
from stages.media.source import MediaRefused, SourceFile
from stages.media.wave64 import RATE, open_samples
from storage.record import StopCode
from tests.stages.media.shelf import HOPELESS, SOUND

HOUR = 3600.0
PADDING = 0.05  # seconds: what a codec may add at its ends


def decoded(
    source: Path,
    folder: Path,
    *,
    track: int | None = None,
    channels: Channels = Channels.AUTO,
    longest: float = HOUR,
) -> tuple[Finished, NDArray[np.int16]]:
    """Decode a file and return what was said of it and its samples."""
    target = folder / "audio.w64"
    request = Request(
        source=str(source), target=str(target), track=track, channels=channels, longest_seconds=longest
    )
    finished = decode(request, lambda _: None)
    samples = np.array(open_samples(target))
    assert finished.decoded_seconds == len(samples) / RATE
    return finished, samples


def is_silent(samples: NDArray[np.int16]) -> bool:
    """Tell whether nothing can be heard."""
    return bool(np.abs(samples).max(initial=0) < 40)


def hertz(samples: NDArray[np.int16]) -> float:
    """Return the pitch of what is heard most."""
    spectrum = np.abs(np.fft.rfft(samples.astype(float)))
    return float(spectrum.argmax() * RATE / len(samples))


def loudness(samples: NDArray[np.int16]) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.square(samples.astype(float)).mean()))


@pytest.mark.parametrize("name", SOUND)
def test_every_kind_of_recording_just_works(name: str, shelf: Path, tmp_path: Path) -> None:
    """The whole sound comes out, at its pitch and loud enough, with no word about damage that matters."""
    finished, samples = decoded(shelf / name, tmp_path)
    seams = 2 if name in {"double.mp3", "rate_change.mp3"} else 1
    assert finished.decoded_seconds == pytest.approx(SOUND[name], abs=PADDING * seams)
    assert hertz(samples) == pytest.approx(300, abs=50)  # the shortest holds six waves
    assert loudness(samples) > 1500
    # What claims a gibibyte and holds 4 s is whole for all we know, but a person should know of the claim.
    cautions = {"cut_short"} if name == "wav_over_len.wav" else set()
    assert {caution.code for caution in finished.cautions} == cautions


@pytest.mark.parametrize("name", HOPELESS)
def test_s_r1_what_no_try_can_help_is_refused(name: str, shelf: Path, tmp_path: Path) -> None:
    """It is refused with its own code, and nothing is left where the copy would be."""
    with pytest.raises(MediaRefused) as refused:
        decoded(shelf / name, tmp_path)
    assert refused.value.code == HOPELESS[name]
    assert refused.value.reason
    assert list(tmp_path.iterdir()) == []


def test_s_r3_a_neighbour_is_not_read_through_any_name(shelf: Path, tmp_path: Path) -> None:
    """A playlist is refused also when it has the extension, the place and the neighbour it wants."""
    (tmp_path / "neighbour.mp3").write_bytes((shelf / "mp3.mp3").read_bytes())
    for number, text in enumerate(("ffconcat version 1.0\nfile neighbour.mp3\n", "#EXTM3U\nneighbour.mp3\n")):
        for name in ("x.ffconcat", "x.m3u8", "x.mp3", "source"):
            playlist = tmp_path / f"{number}-{name}"
            playlist.write_text(text)
            with pytest.raises(MediaRefused, match="no recording of a kind we take"):
                decoded(playlist, tmp_path)


@pytest.mark.parametrize("name", ["wav_zero_len.wav", "wav_stream_len.wav", "double.mp3"])
def test_a_length_guessed_from_the_bit_rate_is_not_the_files_word(
    name: str, shelf: Path, tmp_path: Path
) -> None:
    """Where the header says nothing that can be meant, nothing is declared."""
    assert decoded(shelf / name, tmp_path)[0].declared_seconds is None


def test_a_live_recording_declares_nothing(shelf: Path, tmp_path: Path) -> None:
    """A browser's recorder writes no length; nothing is divided by it."""
    finished, _ = decoded(shelf / "live_no_duration.webm", tmp_path)
    assert (finished.declared_seconds, finished.codec) == (None, "opus")


def test_s_r11_a_cut_file_says_so(shelf: Path, tmp_path: Path) -> None:
    """Declared and decoded stay apart, and a person is told of the difference."""
    finished, _ = decoded(shelf / "cut_half.m4a", tmp_path)
    assert finished.declared_seconds == pytest.approx(40, abs=PADDING)
    assert finished.decoded_seconds == pytest.approx(20, abs=1)
    caution = finished.cautions[0]
    assert caution.code == "cut_short"
    assert caution.sentence == "The file seems cut: it holds 20 s of the 40 s it declares."


@pytest.mark.parametrize("name", ["cut.wav", "cut.rf64", "cut.w64", "cut.flac", "cut.mka"])
def test_s_r11_a_cut_file_of_any_kind_says_so(name: str, shelf: Path, tmp_path: Path) -> None:
    """Also where FFmpeg would guess the length from what is left: the file's own header is asked."""
    finished, samples = decoded(shelf / name, tmp_path)
    assert finished.declared_seconds == pytest.approx(40, abs=2 * PADDING)
    assert finished.decoded_seconds == pytest.approx(20, abs=1)
    assert finished.cautions[0].code == "cut_short"
    assert hertz(samples) == pytest.approx(300, abs=1)


def test_damage_costs_itself_and_moves_nothing(shelf: Path, tmp_path: Path) -> None:
    """Bad packets are counted and told, their time stays on the line, and what follows is heard."""
    finished, samples = decoded(shelf / "damaged.m4a", tmp_path)
    assert finished.bad_packets > 5
    assert [caution.code for caution in finished.cautions] == ["bad_packets"]
    assert finished.decoded_seconds == pytest.approx(40, abs=PADDING)
    assert hertz(samples[-2 * RATE :]) == pytest.approx(300, abs=1)


@pytest.mark.parametrize("name", ["starts_at_5s.mkv", "alone_at_5s.mka"])
def test_s_r11_a_late_start_is_silence_in_front(name: str, shelf: Path, tmp_path: Path) -> None:
    """Sound that begins at 5 s begins at 5 s, with or without a picture before it."""
    finished, samples = decoded(shelf / name, tmp_path)
    assert finished.decoded_seconds == pytest.approx(9, abs=0.001)
    assert is_silent(samples[: 5 * RATE])
    assert not is_silent(samples[5 * RATE : 5 * RATE + RATE // 10])


def test_s_r11_a_gap_stays_a_gap(shelf: Path, tmp_path: Path) -> None:
    """Three seconds without packets are three seconds of silence, and what follows is where it was."""
    _, samples = decoded(shelf / "gap_of_3s.mka", tmp_path)
    assert len(samples) == 7 * RATE
    assert is_silent(samples[2 * RATE : 5 * RATE])
    assert hertz(samples[5 * RATE :]) == pytest.approx(300, abs=1)


def test_jitter_is_no_gap(shelf: Path, tmp_path: Path) -> None:
    """Stamps that waver by less than 50 ms make no holes in a word."""
    assert len(decoded(shelf / "jitter.mka", tmp_path)[1]) == 6 * RATE


@pytest.mark.parametrize("name", ["absurd_jump.mka", "absurd_jump_live.webm"])
def test_an_absurd_stamp_is_not_believed(name: str, shelf: Path, tmp_path: Path) -> None:
    """A stamp months ahead adds nothing; the sound behind it is kept."""
    assert decoded(shelf / name, tmp_path)[0].decoded_seconds == pytest.approx(4, abs=PADDING)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("chained.ogg", 120.0), ("joined.ts", 12.12), ("picture_joins.ts", 165.65)],
)
def test_s_r13_joined_files_are_as_long_as_their_sound(
    name: str, seconds: float, shelf: Path, tmp_path: Path
) -> None:
    """Stamps that start again from zero lose nothing and double nothing."""
    assert decoded(shelf / name, tmp_path)[0].decoded_seconds == pytest.approx(seconds, abs=PADDING)


def test_s_r13_the_limit_is_on_what_is_decoded(shelf: Path, tmp_path: Path) -> None:
    """A file whose header says 20 s and which holds 120 is over a limit of 60, and leaves nothing behind."""
    with pytest.raises(MediaRefused) as refused:
        decoded(shelf / "chained.ogg", tmp_path, longest=60)
    assert refused.value.code == StopCode.TOO_LONG
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("asked", "taken", "pitch"), [(None, 1, 300), (0, 0, None), (1, 1, 300)])
def test_s_r12_the_track_asked_for_is_taken_else_the_first_with_sound(
    asked: int | None, taken: int, pitch: int | None, shelf: Path, tmp_path: Path
) -> None:
    """Tracks are counted from 0 among the audio tracks; what was asked for is taken, silent or not."""
    finished, samples = decoded(shelf / "two_tracks_first_silent.mp4", tmp_path, track=asked)
    assert finished.track == taken
    if pitch is None:
        assert is_silent(samples)
    else:
        assert hertz(samples) == pytest.approx(pitch, abs=1)


@pytest.mark.parametrize("name", ["first_late.mka", "first_quieter.mka", "all_silent.mka", "first_long.mka"])
def test_the_first_of_tracks_that_may_be_meant_is_taken(name: str, shelf: Path, tmp_path: Path) -> None:
    """Also if it begins late, is quieter than the other one, or all are silent."""
    assert decoded(shelf / name, tmp_path)[0].track == 0


def test_the_noise_of_an_unused_input_is_no_sound(shelf: Path, tmp_path: Path) -> None:
    """A track far under the other one is passed over."""
    finished, samples = decoded(shelf / "first_noise.mka", tmp_path)
    assert finished.track == 1
    assert hertz(samples) == pytest.approx(300, abs=1)


def test_a_track_that_is_not_there_is_refused(shelf: Path, tmp_path: Path) -> None:
    """The reason says what was asked for and what there is."""
    with pytest.raises(MediaRefused, match=r"audio track 2 was asked for, .* the file has 2") as refused:
        decoded(shelf / "two_tracks_first_silent.mp4", tmp_path, track=2)
    assert refused.value.code == StopCode.NO_AUDIO


def test_s_r2_a_fault_of_the_disk_is_no_verdict(tmp_path: Path) -> None:
    """A file that cannot be read (this one answers EIO) is an error of ours, never "not media"."""
    with pytest.raises(OSError, match="Input/output error") as failed:
        decoded(Path("/proc/self/mem"), tmp_path)
    assert failed.value.errno == errno.EIO
    with pytest.raises(FileNotFoundError):
        decoded(tmp_path / "missing", tmp_path)


@pytest.mark.parametrize("name", ["moov_end.m4a", "mp3.mp3", "s24_96k.wav", "voice.ogg"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_disk_that_fails_in_the_middle_is_no_verdict(
    name: str, share: float, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the read fails, the I/O error comes out as itself: not as a short recording, not as damage."""
    source = shelf / name
    broken_from = int(source.stat().st_size * share)
    read = SourceFile.read

    def failing(file: SourceFile, size: int) -> bytes:
        if file.tell() + size > broken_from:
            file.error = OSError(errno.EIO, "Input/output error")
            raise file.error
        return read(file, size)

    monkeypatch.setattr(SourceFile, "read", failing)
    with pytest.raises(OSError, match="Input/output error"):
        decoded(source, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_no_verdict(shelf: Path, tmp_path: Path) -> None:
    """ENOSPC comes out as itself."""
    (tmp_path / "audio.w64.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as failed:
        decoded(shelf / "s16.wav", tmp_path)
    assert failed.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


WHOLE = (
    "moov_end.m4a",
    "mp3.mp3",
    "voice.ogg",
    "whole.mka",
    "flac.flac",
    "transport.ts",
    "flash.flv",
    "s16.wav",
)


@pytest.mark.parametrize("name", WHOLE)
def test_any_damage_ends_in_sound_or_a_refusal(name: str, shelf: Path, tmp_path: Path) -> None:
    """Bytes changed anywhere make a recording worse or hopeless; they are never an error of ours."""
    whole = (shelf / name).read_bytes()[:60_000]
    damaged = tmp_path / "damaged"
    for seed in range(25):
        chance = np.random.default_rng(seed)
        data = bytearray(whole)
        for place in chance.integers(0, chance.choice([200, len(data)]), size=chance.choice([1, 10, 100])):
            data[place] = (0, 255, chance.integers(256))[chance.integers(3)]
        damaged.write_bytes(data)
        try:
            ended = decoded(damaged, tmp_path)[0].decoded_seconds > 0
        except MediaRefused as refused:
            ended = refused.code in {StopCode.NOT_MEDIA, StopCode.NO_AUDIO, StopCode.TOO_LONG}
        assert ended, f"seed {seed}"


def test_signs_of_life_are_few_and_grow(shelf: Path, tmp_path: Path) -> None:
    """At most two a second, however fast the decoding is, and never backwards."""
    told: list[tuple[float, float]] = []
    request = Request(
        source=str(shelf / "chained.ogg"),
        target=str(tmp_path / "audio.w64"),
        track=None,
        channels=Channels.AUTO,
        longest_seconds=HOUR,
    )
    started = time.monotonic()
    decode(request, lambda seconds: told.append((time.monotonic(), seconds)))
    assert 1 <= len(told) <= 1 + (time.monotonic() - started) / 0.5
    assert [seconds for _, seconds in told] == sorted(seconds for _, seconds in told)
    assert all(seconds <= 120 for _, seconds in told)
