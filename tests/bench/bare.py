"""Bare faster-whisper with the settings of our recogniser: `python -m tests.bench.bare MODEL FILE`."""

import os
import sys

from faster_whisper import WhisperModel

from tests.bench.audio import LANGUAGE


def main() -> None:
    """Transcribe and print."""
    model = WhisperModel(
        sys.argv[1],
        device="cpu",
        compute_type="int8",
        cpu_threads=len(os.sched_getaffinity(0)),
        local_files_only=True,
    )
    segments, _ = model.transcribe(
        sys.argv[2],
        language=LANGUAGE,
        beam_size=5,
        temperature=0.0,
        vad_filter=True,
        condition_on_previous_text=False,
    )
    for segment in segments:
        sys.stdout.write(segment.text.strip() + "\n")


if __name__ == "__main__":
    main()
