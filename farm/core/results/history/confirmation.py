"""Confirmation of a change: the old file or program measured against the new one, in one session."""

from dataclasses import dataclass
from enum import StrEnum

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.results.history.bisect import LogChange


class ConfirmationOutcome(StrEnum):
    """What the comparison of the old version with the new one shows."""

    #: It is not over.
    RUNNING = "running"
    #: The new one differs from the old one in the direction of the change.
    CONFIRMED = "confirmed"
    #: It does not, by more than the margin, or in the other direction.
    NOT_CONFIRMED = "not_confirmed"
    #: The rounds did not suffice to say.
    UNDECIDED = "undecided"
    #: There are no usable measurements of both.
    NOT_MEASURED = "not_measured"
    #: One of both is gone, or nothing can run them any more.
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The confirmation of a change, as it is stored."""

    change_id: int
    outcome: ConfirmationOutcome
    #: None where it is impossible.
    matrix_id: MatrixId | None = None
    device_id: DeviceId | None = None
    #: Why it is impossible.
    reason: str | None = None
    #: The logarithm of the new one's time over the old one's, and how far its interval reaches to each side.
    delta: float | None = None
    half_width: float | None = None


def judge_confirmation(change: LogChange | None, *, is_slower: bool, margin: float) -> ConfirmationOutcome:
    """Return whether a comparison confirms a change.

    Args:
        change: the new one against the old one; None without an interval.
        is_slower: the direction of the change that was found.
        margin: a smaller difference, in logarithms, is none.
    """
    if change is None:
        return ConfirmationOutcome.NOT_MEASURED
    if change.is_shown:
        is_same_direction = (change.value > 0) is is_slower
        return ConfirmationOutcome.CONFIRMED if is_same_direction else ConfirmationOutcome.NOT_CONFIRMED
    within = abs(change.value) + change.half_width <= margin
    return ConfirmationOutcome.NOT_CONFIRMED if within else ConfirmationOutcome.UNDECIDED
