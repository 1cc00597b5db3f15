"""Compute the speedup of each pair over matrices of equal versions, however many rounds each has.

Points tell which cells there are of a pair, so the cost does not grow with the number of matrices. What was
measured since a session's points were computed is found by its marks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, FactsId
from farm.core.results.history.chosen_labels import PairChoice
from farm.core.runs.measurement import MIN_ROUNDS
from farm.database.known_at import as_known_at
from farm.services.results.history.listed_pairs import ListedPairs, PairsAgainst, PairScope, known_labels
from farm.services.results.speedups import (
    PAGE,
    SpeedupInputs,
    candidate_filter,
    speedup_views,
    with_priors,
)
from farm.store.matrices import matrices
from farm.store.matrices.search import MatrixFilter, with_few_matches
from farm.store.results.measurements import Measurement
from farm.store.results.provenance import builds_of_each
from farm.wire.documents.matrices.matrices import SpeedupView

#: Rounds of so many matrices are pooled at most: the newest ones.
POOLED_MATRICES = 20


def list_latest_speedups(
    connection: Connection,
    *,
    device: str | None = None,
    model: str | None = None,
    across_controls: bool = False,
    choice: PairChoice | None = None,
    which: MatrixFilter | None = None,
    since: datetime | None = None,
    at: datetime | None = None,
    after: CellId | None = None,
    limit: int = PAGE,
    pooled: int = POOLED_MATRICES,
) -> list[SpeedupView]:
    """Return the speedup of each pair over matrices of equal versions; arguments as for one matrix.

    Versions are file, program, build and control level. Where the newest ones have too few rounds for an
    interval, the newest that have enough count, or those with the most: one round hides no hundred. The
    newest matrices of a pair are considered, `pooled` of them.

    Args:
        choice: only these pairs, in matrices that measured both sides, whether planned as a pair or not.
        which: only matrices of a name or a person.
        since: only sessions with a measurement at this time or later.
        at: as known then: by what was measured, and not retracted or parsed again later.

    Raises like `list_speedups`.
    """
    among = candidate_filter(connection, device=device, model=model)
    as_known_at(connection, at)
    scope = PairScope(
        until=None if at is None else matrices.newest_matrix_at(connection, at),
        since=since,
        which=with_few_matches(connection, which),
        pooled=pooled,
    )
    has_any = at is None or scope.until is not None
    labels = None if choice is None else choice.chosen(known_labels(connection))
    pairs = (
        ListedPairs(connection, among, scope, labels)
        if labels is None or labels.baseline is None
        else PairsAgainst(connection, among, scope, labels)
    )
    behind = None if after is None else pairs.key_of(after)
    chosen: list[list[SpeedupInputs]] = []
    for keys in pairs.after(behind, size=limit) if has_any else ():
        chosen += pairs.compared(keys, across_controls=across_controls)
        if len(chosen) >= limit:
            break
    of_pairs = _pooled(connection, chosen[:limit], across_controls=across_controls)
    return speedup_views(connection, with_priors(connection, of_pairs), across_controls=across_controls)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versions:
    """What must be equal in matrices whose rounds are one sample."""

    baseline: tuple[object, ...]
    candidate: tuple[object, ...]
    #: Of the rounds that count.
    builds: frozenset[int]
    control_levels: frozenset[int]


def _pooled(
    connection: Connection, chosen: Sequence[Sequence[SpeedupInputs]], *, across_controls: bool
) -> list[SpeedupInputs]:
    """Return the comparison of each pair over matrices of equal versions; its own are the newest first."""
    snapshots = (
        {value.facts_id for inputs in compared for side in inputs.sides for value in side}
        for compared in chosen
    )
    builds = builds_of_each(connection, snapshots)
    return [
        compared[0] if len(compared) == 1 else _pooled_pair(compared, own, across_controls=across_controls)
        for compared, own in zip(chosen, builds, strict=True)
    ]


def _pooled_pair(
    compared: Sequence[SpeedupInputs], builds: dict[FactsId, int], *, across_controls: bool
) -> SpeedupInputs:
    groups: dict[_Versions, list[SpeedupInputs]] = {}
    rounds: dict[_Versions, int] = {}
    for inputs in compared:
        own = inputs if inputs.builds == builds else replace(inputs, builds=builds)
        means = own.means(across_controls=across_controls)
        sides = [side for pair in means.usable for side in pair]
        versions = _Versions(
            baseline=(own.baseline.variant_id, own.baseline.program_id),
            candidate=(own.candidate.variant_id, own.candidate.program_id),
            builds=frozenset(_build(side.facts_id, builds) for side in sides),
            control_levels=frozenset(int(side.control_level) for side in sides),
        )
        groups.setdefault(versions, []).append(own)
        rounds[versions] = rounds.get(versions, 0) + means.rounds
    enough = (versions for versions in groups if rounds[versions] >= MIN_ROUNDS)
    return _one_after_another(groups[next(enough, max(groups, key=lambda versions: rounds[versions]))])


def _build(facts_id: FactsId | None, builds: dict[FactsId, int]) -> int:
    return 0 if facts_id is None else builds.get(facts_id, 0)


def _one_after_another(compared: Sequence[SpeedupInputs]) -> SpeedupInputs:
    """Return the rounds of several matrices as those of the newest one, numbered on."""
    newest = compared[0]
    sides: tuple[list[Measurement], list[Measurement]] = ([], [])
    duplicates: list[Measurement] = []
    metrics = {cell_id: dict(own) for cell_id, own in newest.metrics.items()}
    ends = 0
    for inputs in compared:
        first = ends
        cells = (newest.baseline.cell_id, newest.candidate.cell_id)
        for side, values, cell, own_cell in zip(
            sides, inputs.sides, cells, (inputs.baseline.cell_id, inputs.candidate.cell_id), strict=True
        ):
            side += [value._replace(round=first + value.round) for value in values]
            ends = max([ends, *(first + value.round + 1 for value in values)])
            own = inputs.metrics.get(own_cell, {})
            metrics.setdefault(cell, {}).update(
                {(first + round, block, repeat): printed for (round, block, repeat), printed in own.items()}
            )
        duplicates += [value._replace(round=first + value.round) for value in inputs.duplicates]
    numbers = tuple(matrix_id for inputs in compared for matrix_id in inputs.matrices)
    return replace(newest, sides=sides, duplicates=duplicates, metrics=metrics, matrices=numbers)
