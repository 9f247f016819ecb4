"""The claim, and the answers that are no errors."""

from uuid import UUID

from attrs import evolve, frozen


@frozen(kw_only=True)
class Claim:
    """What a claim returns: the record's id and the token unique to this claim; no column of the record."""

    record_id: UUID
    token: UUID


@frozen
class NoWork:
    """Nothing is ready. Born of storage's answer to this very poll alone; no explanation changes it."""

    explanations: tuple[str, ...] = ()

    def explained(self, explanation: str) -> "NoWork":
        """Return the same answer with one more layer's explanation."""
        return evolve(self, explanations=(*self.explanations, explanation))


@frozen
class NotFound:
    """There is no such record (or it is not yours, or it is deleted): no failure, and no empty run either."""

    record_id: UUID


@frozen
class ClaimLost:
    """The claim is no longer one's own: nothing was written."""
