"""What an emulated service hears: utterances per channel, of the audio that really came."""

from collections.abc import Sequence

from attrs import frozen

from tests.emulators.tones import RATE, Heard, Samples, decoded, heard

_PAUSE = 0.8  # seconds, behind which another utterance begins
_MOST_WORDS = 6


@frozen(kw_only=True)
class Utterance:
    """Some words of one channel."""

    channel: int
    words: tuple[Heard, ...]

    @property
    def start(self) -> float:
        """When it begins."""
        return self.words[0].start

    @property
    def end(self) -> float:
        """When it ends."""
        return self.words[-1].end

    @property
    def text(self) -> str:
        """Its words, as they were heard."""
        return " ".join(word.text for word in self.words)

    @property
    def normalized(self) -> str:
        """Its words, as they are written."""
        return f"{self.text[0].upper()}{self.text[1:]}."


@frozen(kw_only=True)
class Audio:
    """What came, and what is heard in it; `utterances` by their time."""

    seconds: float
    channels: int
    utterances: tuple[Utterance, ...]


def listen(data: bytes, *, raw_channels: int = 0, mixed: bool = False) -> Audio:
    """Return what is heard in a file, or in the mix of its channels; raises ValueError where it is no audio."""
    channels = decoded(data, raw_channels=raw_channels, mixed=mixed)
    utterances = [each for number, one in enumerate(channels) for each in _utterances(number, one)]
    return Audio(
        seconds=len(channels[0]) / RATE,
        channels=len(channels),
        utterances=tuple(sorted(utterances, key=lambda each: (each.start, each.channel))),
    )


def _utterances(channel: int, samples: Samples) -> list[Utterance]:
    groups: list[list[Heard]] = []
    for word in heard(samples):
        if groups and word.start - groups[-1][-1].end < _PAUSE and len(groups[-1]) < _MOST_WORDS:
            groups[-1].append(word)
        else:
            groups.append([word])
    return [Utterance(channel=channel, words=tuple(group)) for group in groups]


def texts(utterances: Sequence[Utterance]) -> list[str]:
    """Return all words, as they were heard."""
    return [word.text for utterance in utterances for word in utterance.words]
