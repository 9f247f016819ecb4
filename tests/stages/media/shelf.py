"""The shelf of odd recordings that people really send, each with what is true about it."""

import struct
from pathlib import Path

import numpy as np

from storage.record import StopCode
from tests.stages.media.studio import PLAYLIST, OneWay, Samples, Tape, record, silence, tone

RATE = 16_000
MPEG_RATE = 44_100

# What must just work, with the seconds of sound that are in it: a tone of 300 Hz and nothing else.
SOUND = {
    "u8_8k.wav": 4.0,
    "alaw.wav": 4.0,
    "mulaw.wav": 4.0,
    "s16.wav": 4.0,
    "s24_96k.wav": 4.0,
    "float_stereo.wav": 4.0,
    "aiff.aiff": 4.0,
    "flac.flac": 4.0,
    "mp3.mp3": 3.0,
    "alac.m4a": 4.0,
    "moov_end.m4a": 40.0,
    "adts.aac": 4.0,
    "voice.ogg": 4.0,
    "transport.ts": 4.0,
    "flash.flv": 4.0,
    "live_no_duration.webm": 4.0,
    "wav_named.mp3": 4.0,
    "wav_zero_len.wav": 4.0,
    "wav_over_len.wav": 4.0,
    "wav_stream_len.wav": 4.0,
    "wav_odd_tail.wav": 4.0,
    "huge_id3.mp3": 3.0,
    "double.mp3": 6.0,
    "rate_change.mp3": 6.0,
    "antiphase.wav": 4.0,
    "right_only.wav": 4.0,
    "mono_as_stereo.wav": 4.0,
    "six_sides.wav": 4.0,
    "nine_sides.wav": 4.0,
    "beside_pictures.mkv": 4.0,
    "cover_art.mp3": 3.0,
    "tiny_20ms.wav": 0.02,
}

# What no other try can help.
HOPELESS = {
    "empty.mp3": StopCode.NOT_MEDIA,
    "five_bytes.webm": StopCode.NOT_MEDIA,
    "noise_bytes.mp3": StopCode.NOT_MEDIA,
    "zeros.bin": StopCode.NOT_MEDIA,
    "html.mp3": StopCode.NOT_MEDIA,
    "text.txt": StopCode.NOT_MEDIA,
    "picture.png": StopCode.NOT_MEDIA,
    "no_moov.m4a": StopCode.NOT_MEDIA,
    "id3_lies.mp3": StopCode.NOT_MEDIA,
    "broken_packets.mka": StopCode.NOT_MEDIA,
    "w64_of_no_end.w64": StopCode.NOT_MEDIA,
    "rate_of_1.wav": StopCode.NOT_MEDIA,
    "rate_of_4e9.wav": StopCode.NOT_MEDIA,
    "hls_neighbour.mp3": StopCode.NOT_MEDIA,
    "hls_neighbour.m3u8": StopCode.NOT_MEDIA,
    "hls_absolute.mp3": StopCode.NOT_MEDIA,
    "hls_server.mp3": StopCode.NOT_MEDIA,
    "concat_neighbour.wav": StopCode.NOT_MEDIA,
    "concat_absolute.wav": StopCode.NOT_MEDIA,
    "session.sdp": StopCode.NOT_MEDIA,
    "manifest.mpd": StopCode.NOT_MEDIA,
    "video_only.mp4": StopCode.NO_AUDIO,
    "cover_only.m4a": StopCode.NO_AUDIO,
    "header_only.wav": StopCode.NO_AUDIO,
    "one_sample.wav": StopCode.NO_AUDIO,
}


def fill(shelf: Path) -> None:
    """Make every recording named here, and a few more that tests name themselves."""
    _simple(shelf)
    _wav_lies(shelf)
    _wave64_lies(shelf)
    _mpeg(shelf)
    _sides(shelf)
    _lines(shelf)
    _pictures(shelf)
    _not_media(shelf)
    _attacks(shelf)


def _simple(shelf: Path) -> None:
    for name, container, codec, rate in (
        ("u8_8k.wav", "wav", "pcm_u8", 8000),
        ("alaw.wav", "wav", "pcm_alaw", 8000),
        ("mulaw.wav", "wav", "pcm_mulaw", 8000),
        ("s16.wav", "wav", "pcm_s16le", RATE),
        ("s24_96k.wav", "wav", "pcm_s24le", 96_000),
        ("aiff.aiff", "aiff", "pcm_s16be", 22_050),
        ("flac.flac", "flac", "flac", MPEG_RATE),
        ("alac.m4a", "ipod", "alac", MPEG_RATE),
        ("adts.aac", "adts", "aac", MPEG_RATE),
        ("voice.ogg", "ogg", "libopus", 48_000),
        ("transport.ts", "mpegts", "aac", MPEG_RATE),
        ("flash.flv", "flv", "aac", MPEG_RATE),
    ):
        record(shelf / name, container, codec, tone(4, rate), rate)
    record(
        shelf / "float_stereo.wav", "wav", "pcm_f32le", np.repeat(tone(4, MPEG_RATE), 2, axis=1), MPEG_RATE
    )
    record(shelf / "tiny_20ms.wav", "wav", "pcm_s16le", tone(0.02, RATE), RATE)
    with (shelf / "live_no_duration.webm").open("wb") as file:
        record(OneWay(file), "webm", "libopus", tone(4, 48_000), 48_000)
    record(shelf / "part.ogg", "ogg", "libopus", tone(20, 48_000), 48_000)
    (shelf / "joined.ts").write_bytes((shelf / "transport.ts").read_bytes() * 3)
    (shelf / "chained.ogg").write_bytes((shelf / "part.ogg").read_bytes() * 6)


def _wave64_lies(shelf: Path) -> None:
    """A part so large that the next one lies where no file reaches."""
    whole = bytearray((shelf / "whole40.w64").read_bytes()[:100_000])
    at = whole.index(b"fmt ") + 16
    whole[at : at + 8] = b"\xff" * 8
    (shelf / "w64_of_no_end.w64").write_bytes(whole)


def _wav_lies(shelf: Path) -> None:
    plain = (shelf / "s16.wav").read_bytes()
    at = plain.index(b"data") + 4

    def sized(name: str, size: int) -> None:
        (shelf / name).write_bytes(plain[:at] + struct.pack("<I", size) + plain[at + 4 :])

    for name, rate in (("rate_of_1.wav", 1), ("rate_of_4e9.wav", 4_000_000_000)):
        (shelf / name).write_bytes(plain[:24] + struct.pack("<I", rate) + plain[28:])
    (shelf / "one_sample.wav").write_bytes(wav(tone(1, 96_000)[:1], 96_000))
    long = wav(tone(40, RATE))
    (shelf / "cut.wav").write_bytes(long[: len(long) // 2])
    sizes = struct.pack("<QQQI", len(long), len(long) - 44, 0, 0)
    rf64 = b"RF64\xff\xff\xff\xffWAVEds64" + struct.pack("<I", len(sizes)) + sizes + long[12:36]
    (shelf / "cut.rf64").write_bytes(rf64 + b"data\xff\xff\xff\xff" + long[44 : len(long) // 2])
    for name, container, codec in (
        ("w64", "w64", "pcm_s16le"),
        ("flac", "flac", "flac"),
        ("mka", "matroska", "aac"),
    ):
        record(shelf / f"whole40.{name}", container, codec, tone(40, RATE), RATE)
        whole = (shelf / f"whole40.{name}").read_bytes()
        (shelf / f"cut.{name}").write_bytes(whole[: len(whole) // 2])
    sized("wav_zero_len.wav", 0)
    sized("wav_over_len.wav", 1 << 30)
    sized("wav_stream_len.wav", 0xFFFFFFFF)
    (shelf / "wav_odd_tail.wav").write_bytes(plain[:-1])
    (shelf / "wav_named.mp3").write_bytes(plain)
    (shelf / "header_only.wav").write_bytes(plain[:at] + struct.pack("<I", 0))


def _mpeg(shelf: Path) -> None:
    record(shelf / "mp3.mp3", "mp3", "libmp3lame", tone(3, MPEG_RATE), MPEG_RATE)
    record(shelf / "b.mp3", "mp3", "libmp3lame", np.repeat(tone(3, 48_000), 2, axis=1), 48_000)
    first, second = (shelf / "mp3.mp3").read_bytes(), (shelf / "b.mp3").read_bytes()
    (shelf / "double.mp3").write_bytes(first * 2)
    (shelf / "rate_change.mp3").write_bytes(first + second)
    size = 3_000_000
    size_bytes = bytes([(size >> 21) & 127, (size >> 14) & 127, (size >> 7) & 127, size & 127])
    (shelf / "huge_id3.mp3").write_bytes(b"ID3\x03\x00\x00" + size_bytes + bytes(size) + first)
    (shelf / "id3_lies.mp3").write_bytes(b"ID3\x03\x00\x00" + b"\x7f" * 4 + first)

    record(shelf / "moov_end.m4a", "ipod", "aac", tone(40, MPEG_RATE), MPEG_RATE)
    record(shelf / "moov_start.m4a", "ipod", "aac", tone(40, MPEG_RATE), MPEG_RATE, movflags="+faststart")
    end, start = (shelf / "moov_end.m4a").read_bytes(), (shelf / "moov_start.m4a").read_bytes()
    (shelf / "no_moov.m4a").write_bytes(end[: len(end) // 2])
    (shelf / "cut_half.m4a").write_bytes(start[: len(start) // 2])
    head, body = start[:-200_000], bytearray(start[-200_000:])
    body[50_000:60_000] = np.random.default_rng(5).bytes(10_000)
    (shelf / "damaged.m4a").write_bytes(head + bytes(body))


def _sides(shelf: Path) -> None:
    left = tone(4, RATE)
    for name, sides in (
        ("antiphase.wav", [left, -left]),
        ("right_only.wav", [left * 0, left]),
        ("mono_as_stereo.wav", [left, left]),
    ):
        record(shelf / name, "wav", "pcm_s16le", np.hstack(sides), RATE)
    (shelf / "six_sides.wav").write_bytes(wav(np.hstack([left // 3] * 6)))
    (shelf / "nine_sides.wav").write_bytes(wav(np.hstack([left // 3] * 9)))
    call = _call()
    (shelf / "call.wav").write_bytes(wav(call))
    # A microphone before each of two people who sit together hears the other one too, a little later.
    (shelf / "one_microphone_each.wav").write_bytes(wav(call + np.roll(call, 47, axis=0)[:, ::-1] // 3))
    with Tape(shelf / "call_at_5s.mka", "matroska") as tape:
        sound = tape.add_audio("pcm_s16le", RATE, sides=2)
        tape.put(sound, call, at=5.0)
        tape.end(sound)


def wav(samples: Samples, rate: int = RATE) -> bytes:
    """Return a plain WAV of samples of shape (n, sides)."""
    data, sides = samples.astype("<i2").tobytes(), samples.shape[1]
    form = struct.pack("<HHIIHH", 1, sides, rate, rate * sides * 2, sides * 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _call() -> Samples:
    """Twelve seconds in which two people take turns, two seconds each: 300 Hz left, 500 Hz right."""
    turn, pause = 2, silence(2, RATE)
    left = np.vstack([tone(turn, RATE), pause] * 3)
    right = np.vstack([pause, tone(turn, RATE, 500)] * 3)
    return np.hstack([left, right])


def _lines(shelf: Path) -> None:
    with Tape(shelf / "starts_at_5s.mkv", "matroska") as tape:
        sound, picture = tape.add_audio("pcm_s16le", RATE), tape.add_picture()
        tape.show(picture, 9)
        tape.put(sound, tone(4, RATE), at=5.0)
        tape.end(sound)
    with Tape(shelf / "alone_at_5s.mka", "matroska") as tape:
        sound = tape.add_audio("pcm_s16le", RATE)
        tape.put(sound, tone(4, RATE), at=5.0)
        tape.end(sound)
    _pieces(shelf / "gap_of_3s.mka", [0.0, 5.0])  # 2 s each: nothing from 2 to 5
    _pieces(shelf / "jitter.mka", [0.0, 2.03, 4.04])
    _pieces(shelf / "absurd_jump.mka", [0.0, 5_000_000.0])
    with (shelf / "absurd_jump_live.webm").open("wb") as file, Tape(OneWay(file), "webm") as tape:
        sound = tape.add_audio("libopus", 48_000)
        tape.put(sound, tone(2, 48_000))
        tape.put(sound, tone(2, 48_000), at=5_000_000.0)
        tape.end(sound)
    with Tape(shelf / "two_tracks_first_silent.mp4", "mp4") as tape:
        first, second = tape.add_audio("aac", MPEG_RATE), tape.add_audio("aac", MPEG_RATE)
        tape.put(first, silence(4, MPEG_RATE))
        tape.put(second, tone(4, MPEG_RATE))
        tape.end(first)
        tape.end(second)
    loud, noise = tone(4, RATE), tone(4, RATE, 4000) // 500
    _two_tracks(shelf / "first_late.mka", np.vstack([silence(20, RATE), loud]), tone(24, RATE, 500))
    _two_tracks(shelf / "first_quieter.mka", loud // 10, tone(4, RATE, 500))
    _two_tracks(shelf / "all_silent.mka", silence(4, RATE), silence(4, RATE))
    _two_tracks(shelf / "first_long.mka", tone(30, RATE), tone(30, RATE, 500))
    _two_tracks(shelf / "first_noise.mka", noise, loud)


def _two_tracks(path: Path, first: Samples, second: Samples) -> None:
    with Tape(path, "matroska") as tape:
        for sound, samples in [(tape.add_audio("pcm_s16le", RATE), each) for each in (first, second)]:
            tape.put(sound, samples)
            tape.end(sound)


def _pieces(path: Path, starts: list[float]) -> None:
    with Tape(path, "matroska") as tape:
        sound = tape.add_audio("pcm_s16le", RATE)
        for start in starts:
            tape.put(sound, tone(2, RATE), at=start)
        tape.end(sound)


def _pictures(shelf: Path) -> None:
    with Tape(shelf / "video_only.mp4", "mp4") as tape:
        tape.show(tape.add_picture(), 4)
    with Tape(shelf / "cover_only.m4a", "mp4") as tape:
        tape.show(tape.add_picture(cover=True), 1)
    with Tape(shelf / "picture.png", "image2", update="1") as tape:
        tape.show(tape.add_picture(cover=True), 1)
    with Tape(shelf / "cover_art.mp3", "mp3") as tape:
        sound, picture = tape.add_audio("libmp3lame", MPEG_RATE), tape.add_picture(cover=True)
        tape.show(picture, 1)
        tape.put(sound, tone(3, MPEG_RATE))
        tape.end(sound)
    # A broadcast begins with sound alone; a picture joins it later.
    with Tape(shelf / "with_picture.ts", "mpegts") as tape:
        sound, picture = tape.add_audio("aac", MPEG_RATE), tape.add_picture()
        tape.show(picture, 4)
        tape.put(sound, tone(4, MPEG_RATE))
        tape.end(sound)
    alone, together = (shelf / "transport.ts").read_bytes(), (shelf / "with_picture.ts").read_bytes()
    (shelf / "picture_joins.ts").write_bytes(alone * 20 + together + alone * 20)
    with Tape(shelf / "beside_pictures.mkv", "matroska") as tape:
        sound, picture = tape.add_audio("aac", MPEG_RATE), tape.add_picture()
        tape.show(picture, 30)
        tape.put(sound, tone(4, MPEG_RATE))
        tape.end(sound)


def _not_media(shelf: Path) -> None:
    chance = np.random.default_rng(1)
    (shelf / "empty.mp3").touch()
    (shelf / "five_bytes.webm").write_bytes(chance.bytes(5))
    (shelf / "noise_bytes.mp3").write_bytes(chance.bytes(4096))
    (shelf / "zeros.bin").write_bytes(bytes(100_000))
    (shelf / "html.mp3").write_text("<html><body>404</body></html>")
    (shelf / "text.txt").write_text("Это не запись.\n" * 500)
    # A sound container, and not one packet in it that can be decoded.
    record(shelf / "whole.mka", "matroska", "aac", tone(4, MPEG_RATE), MPEG_RATE)
    data = bytearray((shelf / "whole.mka").read_bytes())
    at = data.index(b"\x1f\x43\xb6\x75")  # the first Cluster
    while (at := data.find(b"\xa3", at)) >= 0:  # a SimpleBlock, its size in two bytes
        size = int.from_bytes(data[at + 1 : at + 3]) & 0x3FFF
        if data[at + 1] & 0xC0 == 0x40 and data[at + 3 : at + 4] == b"\x81":
            data[at + 7 : at + 3 + size] = b"\xff" * (size - 4)
            at += size
        at += 1
    (shelf / "broken_packets.mka").write_bytes(bytes(data))


def _attacks(shelf: Path) -> None:
    for name, url in (
        ("hls_neighbour.mp3", "mp3.mp3"),
        ("hls_neighbour.m3u8", "mp3.mp3"),
        ("hls_absolute.mp3", "file:///etc/passwd"),
        ("hls_server.mp3", "http://127.0.0.1:9/x.mp3"),
    ):
        (shelf / name).write_text(PLAYLIST.format(url))
    (shelf / "concat_neighbour.wav").write_text("ffconcat version 1.0\nfile s16.wav\n")
    (shelf / "concat_absolute.wav").write_text("ffconcat version 1.0\nfile '/etc/passwd'\n")
    (shelf / "session.sdp").write_text(
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n"
    )
    (shelf / "manifest.mpd").write_text(
        '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period>'
        '<AdaptationSet><Representation id="0"><BaseURL>mp3.mp3</BaseURL></Representation></AdaptationSet>'
        "</Period></MPD>\n"
    )
