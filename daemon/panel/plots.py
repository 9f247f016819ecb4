"""Small plots as SVG, made of attributes alone: no style stands in them, and no script. No I/O."""

from collections.abc import Sequence

from attrs import frozen

WIDTH, HEIGHT, GAP = 480.0, 96.0, 2.0
_LEAST = 1.5  # what is there at all is seen


@frozen(kw_only=True)
class Bar:
    """A bar of a plot, in its own units; `says` is what it stands for."""

    x: float
    y: float
    width: float
    height: float
    says: str


def bars(values: Sequence[float | None], words: Sequence[str]) -> Sequence[Bar]:
    """Return a bar for each value, side by side, the highest as high as the plot; none for the unknown."""
    most = max((value for value in values if value is not None), default=0.0) or 1.0
    step = WIDTH / max(len(values), 1)
    return [
        _bar(number * step, step - GAP, value / most, says)
        for number, (value, says) in enumerate(zip(values, words, strict=True))
        if value is not None
    ]


def _bar(x: float, width: float, share: float, says: str) -> Bar:
    height = max(share * HEIGHT, _LEAST) if share > 0 else 0.0
    return Bar(
        x=round(x, 2), y=round(HEIGHT - height, 2), width=round(width, 2), height=round(height, 2), says=says
    )
