"""What may come of a call, beside an answer. What is raised has words that were cleaned.

::

    MeansAway
    └── EndpointAway   nothing can be had of it by anybody: the lane closes
    StageFailed
    └── CallFailed     this call came to nothing; whether that is the endpoint's state is asked afterwards
        └── BadAnswer  what was answered is not what was asked for
"""

from storage.errors import MeansAway, StageFailed


class EndpointAway(MeansAway):
    """The endpoint cannot be reached, does not let us in, or is not what it is taken for."""


class CallFailed(StageFailed):
    """A call that was begun has no answer of use; what it asked for may have been done or not."""


class BadAnswer(CallFailed):
    """The answer is cut off, too long, or not in any form that is known."""


class PutOffError(Exception):
    """No call was made, or none was taken: a quota is used up. For `Remote`, which gives the attempt back."""

    def __init__(self, why: str, seconds: float) -> None:
        """Keep in how many seconds there may be some of it."""
        super().__init__(why)
        self.seconds = seconds
