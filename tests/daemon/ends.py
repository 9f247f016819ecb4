"""What may end a stage, in which circumstances, and what each pair of them comes to: the rule as one table.

An error in a task that a cleanup starts tells nothing of the cancel, as Trio's nurseries drop what they were
entered with: it is taken for the stage's own, which errs on the side of the count.
"""

from typing import Final

CIRCUMSTANCES: Final = ("lease", "limit", "stop", "crash", "none")

TABLE: Final = """
                 lease        limit        stop         crash        none
returned         Reached      Reached      Reached      Reached      Reached
own              Failed       Failed       Failed       Failed       Failed
own deadline     -            -            -            -            Failed
cancelled + own  Failed       Failed       Failed       Failed       -
cleanup          ClaimLost    TimedOut     GivenBack    Failed       -
cleanup's group  ClaimLost    TimedOut     GivenBack    Failed       -
cleanup's task   Failed       Failed       Failed       Failed       -
cancelled        ClaimLost    TimedOut     GivenBack    Failed       -
nursery          ClaimLost    TimedOut     GivenBack    Failed       -
nothing          ClaimLost    TimedOut     GivenBack    Failed       Failed
interrupt        ClaimLost    TimedOut     Failed       Failed       Failed
exit             ClaimLost    TimedOut     Failed       Failed       Failed
cancelled + exit ClaimLost    TimedOut     Failed       Failed       -
"""


def cells() -> list[tuple[str, str, str]]:
    """Return (what ended it, circumstance, the end) for every pair that can be."""
    found = []
    for line in TABLE.strip("\n").splitlines()[1:]:
        ended_by, ends = line[:17].strip(), line[17:].split()
        pairs = zip(CIRCUMSTANCES, ends, strict=True)
        found += [(ended_by, around, end) for around, end in pairs if end != "-"]
    return found
