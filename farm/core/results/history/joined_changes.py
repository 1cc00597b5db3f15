"""Changes of one model file, which detection finds for each of its settings, as one change."""

import math
from collections.abc import Iterable
from dataclasses import replace

from farm.core.results.history.changes.breaks import ROLLOUT_DAYS
from farm.core.results.history.changes.points import Cause, Change


def files_joined(changes: Iterable[Change]) -> list[Change]:
    """Return the changes, those that one new file makes in one direction as one.

    A file is measured with several settings, and each of them is a variant for detection: what it is compared
    with differs. To people it is one file.
    """
    joined: list[Change] = []
    for change in changes:
        place = next((at for at, other in enumerate(joined) if _is_one(other, change)), None)
        if place is None:
            joined.append(change)
        else:
            joined[place] = _join(joined[place], change)
    return joined


def _is_one(before: Change, change: Change) -> bool:
    return (
        before.cause is Cause.FILE is change.cause
        and before.version is not None
        and before.version == change.version
        and before.delta * change.delta > 0
        and abs(before.day - change.day) <= ROLLOUT_DAYS
    )


def _join(before: Change, change: Change) -> Change:
    weights = [1.0 / (part.se**2 + 1e-9) for part in (before, change)]
    total = math.fsum(weights)
    return replace(
        before,
        series=None,
        scope={},
        day=min(before.day, change.day),
        delta=(weights[0] * before.delta + weights[1] * change.delta) / total,
        z=max(before.z, change.z, key=abs),
        evidence=[*before.evidence, *change.evidence],
        se=1.0 / math.sqrt(total),
    )
