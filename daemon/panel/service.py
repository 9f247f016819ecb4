"""The service at a glance, for the account that runs it: the queue, who works on what, what is stopped."""

from collections.abc import Mapping, Sequence

from attrs import frozen
from starlette.responses import Response

from daemon.panel.page import For, Page, Visit
from daemon.panel.plots import HEIGHT, WIDTH, bars
from daemon.panel.rows import stretch_of
from daemon.panel.words import Words
from daemon.queue_gauges import STATES
from storage.overview import MOST_STOPPED, Held, Overview, Seen, read_overview
from storage.queue_numbers import Heap
from storage.record import Milestone, StopCode

SERVICE = "/service"
_HOUR = 3600.0


@frozen(kw_only=True)
class QueueLine:
    """How many records are at a milestone, in each state, and the longest stay there, also as a share."""

    milestone: str
    lane: str
    states: Mapping[str, int]
    oldest: str
    share: float


async def show_service(visit: Visit) -> Response:
    """Show the service as it is now."""
    code = visit.request.query_params.get("code", "")
    chosen = StopCode(code) if code in set(StopCode) else None
    seen, words = await read_overview(visit.doors.database, chosen), visit.words
    queue = queue_lines(seen.heaps, words)
    return visit.page(
        "service.html",
        seen=seen,
        queue=queue,
        hands=hands_of(seen),
        chosen=chosen,
        most_stopped=MOST_STOPPED,
        states=STATES,
        plots=plots_of(seen),
        width=WIDTH,
        height=HEIGHT,
        stretch=lambda seconds: stretch_of(seconds, words),
        records=sum(hour.records or 0 for hour in seen.hours),
        audio_hours=sum(hour.audio_seconds for hour in seen.hours) / _HOUR,
    )


def queue_lines(heaps: Sequence[Heap], words: Words) -> Sequence[QueueLine]:
    """Return the queue, a line for each milestone and lane that has records, in the order of work."""
    places = sorted(
        {(heap.milestone, heap.lane) for heap in heaps},
        key=lambda at: (list(Milestone).index(Milestone(at[0])), at[1]),
    )
    longest = max((heap.oldest_seconds for heap in heaps), default=0.0)
    lines = []
    for milestone, lane in places:
        there = [heap for heap in heaps if (heap.milestone, heap.lane) == (milestone, lane)]
        oldest = max(heap.oldest_seconds for heap in there)
        states = {state: sum(heap.records for heap in there if heap.state == state) for state in STATES}
        lines.append(
            QueueLine(
                milestone=milestone,
                lane=lane,
                states=states,
                oldest=stretch_of(oldest, words),
                share=round(oldest / (longest or 1.0), 3),
            )
        )
    return lines


@frozen(kw_only=True)
class Hands:
    """A daemon and what it has in hand; None for one whose signs are long over."""

    run: str
    daemon: Seen | None
    records: Sequence[Held]


def hands_of(seen: Overview) -> Sequence[Hands]:
    """Return what each daemon has in hand."""
    daemons = {daemon.run: daemon for daemon in seen.daemons}
    runs = dict.fromkeys([*daemons, *(held.run for held in seen.held)])
    return [
        Hands(run=run, daemon=daemons.get(run), records=[held for held in seen.held if held.run == run])
        for run in runs
    ]


@frozen(kw_only=True)
class Plot:
    """A plot with its heading and what is at its two ends."""

    name: str
    bars: Sequence[object]
    most: str
    first: str
    last: str


def plots_of(seen: Overview) -> Sequence[Plot]:
    """Return the plots: what got done hour by hour, in records and in audio."""
    hours = [f"{hour.hour:%H}:00" for hour in seen.hours]
    records = [hour.records for hour in seen.hours]
    audio = [None if hour.records is None else hour.audio_seconds / _HOUR for hour in seen.hours]
    ends = {"first": hours[0], "last": hours[-1]} if hours else {"first": "", "last": ""}
    return (
        Plot(
            name="records",
            bars=bars(records, [f"{at}: {number}" for at, number in zip(hours, records, strict=True)]),
            most=str(max((number for number in records if number is not None), default=0)),
            **ends,
        ),
        Plot(
            name="audio",
            bars=bars(audio, [f"{at}: {number or 0:.1f}" for at, number in zip(hours, audio, strict=True)]),
            most=f"{max((number for number in audio if number is not None), default=0.0):.1f}",
            **ends,
        ),
    )


PAGES = (Page(method="GET", path=SERVICE, handler=show_service, who=For.SERVICE_OWNER),)
