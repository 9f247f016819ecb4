"""A header's own word on its length: taken where it can be meant, and harmless where it is nonsense."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.media.riff import declared_seconds
from stages.media.source import SourceFile
from tests.stages.media.shelf import wav
from tests.stages.media.studio import tone

PLAIN = wav(tone(0.1, 16_000))
SIZE = PLAIN.index(b"data") + 4


def declared(data: bytes, folder: Path) -> float | None:
    """Return what these bytes declare."""
    (folder / "source").write_bytes(data)
    with SourceFile(folder / "source", lambda: None) as file:
        return declared_seconds(file)


@pytest.mark.parametrize(
    ("size", "seconds"),
    [
        (3200, 0.1),
        (320_000, 10.0),
        (1 << 30, 33_554.432),
        (0, None),
        (0x7FFFFFFF, None),
        (0x7FFFFFFF - 36, None),
        (0x80000000, None),
        (0xFFFFFFFF, None),
        (0xFFFFFFFF - 36, None),
    ],
)
def test_a_size_that_is_put_in_for_unknown_is_no_length(
    size: int, seconds: float | None, tmp_path: Path
) -> None:
    """All others are believed, also when the file holds less."""
    assert declared(PLAIN[:SIZE] + struct.pack("<I", size) + PLAIN[SIZE + 4 :], tmp_path) == seconds


def test_what_says_nothing_of_its_rate_has_no_length(tmp_path: Path) -> None:
    """Neither without its format, nor with one of no bytes a second; nor what is no RIFF at all."""
    assert declared(PLAIN.replace(b"fmt ", b"smt "), tmp_path) is None
    assert declared(PLAIN.replace(struct.pack("<I", 32_000), bytes(4)), tmp_path) is None
    assert declared(PLAIN[:30], tmp_path) is None
    assert declared(PLAIN[:50], tmp_path) == 0.1
    assert declared(b"OggS" + PLAIN, tmp_path) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from(
        [
            b"RIFF1234WAVE",
            b"RF64\xff\xff\xff\xffWAVE",
            bytes.fromhex("726966662e91cf11a5d628db04c10000ffffffffffffffff77617665f3acd3118cd100c04f8edb8a"),
        ]
    ),
    parts=st.lists(
        st.tuples(st.sampled_from([b"fmt ", b"data", b"ds64", b"LIST"]), st.binary(min_size=4, max_size=40))
    ),
)
def test_no_header_is_too_odd(start: bytes, parts: list[tuple[bytes, bytes]], tmp_path: Path) -> None:
    """Whatever follows the first bytes, there is an answer, and it is a length or none."""
    seconds = declared(start + b"".join(name + rest for name, rest in parts), tmp_path)
    assert seconds is None or seconds > 0
