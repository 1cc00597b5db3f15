"""Compute the speedup of each pair over matrices of equal versions, however many rounds each has.

Points tell which cells there are of a pair, so the cost does not grow with the number of matrices. What was
measured since a session's points were computed is found by its marks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, FactsId
from farm.core.results.history.chosen_labels import PairChoice
from farm.core.results.pairing import SharedBaseline
from farm.core.runs.measurement import MIN_ROUNDS
from farm.database.known_at import as_known_at
from farm.services.results.history.chosen_cells import candidate_filter
from farm.services.results.history.listed_pairs import (
    ListedPairs,
    PairsAgainst,
    PairScope,
    known_labels,
    labels_on_device,
)
from farm.services.results.speedups.inputs import SpeedupInputs
from farm.services.results.speedups.listing import PAGE, speedup_views
from farm.services.results.speedups.pairs import with_priors
from farm.store.matrices import matrices
from farm.store.matrices.search import MatrixFilter, with_few_matches
from farm.store.results.history.newest_points import list_comparisons
from farm.store.results.history.stale_points import pending_sessions
from farm.store.results.measurements import Measurement
from farm.store.results.provenance import builds_of_each
from farm.wire.documents.results.speedups import SpeedupView

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
    device_id = among.device_id
    labels = None
    if choice is not None:
        pending = pending_sessions(connection)
        labels = choice.chosen(
            known_labels(connection, list_comparisons(connection), pending, model=model),
            on_device=()
            if device_id is None
            else labels_on_device(connection, device_id, pending, model=among.model),
        )
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


#: The rounds of a baseline in several matrices: by identity, each with the number that it begins at.
_Numbered = tuple[tuple[int, int], ...]


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
    baselines: dict[_Numbered, SharedBaseline[Measurement]] = {}
    return [
        compared[0]
        if len(compared) == 1
        else _one_after_another(_of_one_version(compared, own, across_controls=across_controls), baselines)
        for compared, own in zip(chosen, builds, strict=True)
    ]


def _of_one_version(
    compared: Sequence[SpeedupInputs], builds: dict[FactsId, int], *, across_controls: bool
) -> list[SpeedupInputs]:
    """Return the comparisons of a pair that are of the newest versions with enough rounds."""
    groups: dict[_Versions, list[SpeedupInputs]] = {}
    rounds: dict[_Versions, int] = {}
    for inputs in compared:
        own = inputs if inputs.builds == builds else replace(inputs, builds=builds)
        means = own.means(across_controls=across_controls)
        sides = {(side.facts_id, side.control_level) for pair in means.usable for side in pair}
        versions = _Versions(
            baseline=(own.baseline.variant_id, own.baseline.program_id),
            candidate=(own.candidate.variant_id, own.candidate.program_id),
            builds=frozenset(_build(facts_id, builds) for facts_id, _ in sides),
            control_levels=frozenset(int(level) for _, level in sides),
        )
        groups.setdefault(versions, []).append(own)
        rounds[versions] = rounds.get(versions, 0) + means.rounds
    enough = (versions for versions in groups if rounds[versions] >= MIN_ROUNDS)
    return groups[next(enough, max(groups, key=lambda versions: rounds[versions]))]


def _build(facts_id: FactsId | None, builds: dict[FactsId, int]) -> int:
    return 0 if facts_id is None else builds.get(facts_id, 0)


def _one_after_another(
    compared: Sequence[SpeedupInputs], baselines: dict[_Numbered, SharedBaseline[Measurement]]
) -> SpeedupInputs:
    """Return the rounds of several matrices as those of the newest one, numbered on.

    Candidates of one baseline share its numbered rounds, which are in `baselines`.
    """
    newest = compared[0]
    if len(compared) == 1:
        return newest
    offsets, ends = [], 0
    for inputs in compared:
        offsets.append(ends)
        ends = max([ends, *(ends + value.round + 1 for side in inputs.sides for value in side)])
    numbered = [*zip(compared, offsets, strict=True)]
    key = tuple((id(inputs.its), first) for inputs, first in numbered)
    if key not in baselines:
        baselines[key] = SharedBaseline(
            starts=[value for inputs, first in numbered for value in _behind(first, inputs.its.starts)],
            duplicates=[value for inputs, first in numbered for value in _behind(first, inputs.duplicates)],
        )
    metrics = {cell_id: dict(own) for cell_id, own in newest.metrics.items()}
    for inputs, first in numbered:
        for cell, own_cell in (
            (newest.baseline.cell_id, inputs.baseline.cell_id),
            (newest.candidate.cell_id, inputs.candidate.cell_id),
        ):
            own = inputs.metrics.get(own_cell, {})
            metrics.setdefault(cell, {}).update(
                {(first + round, block, repeat): printed for (round, block, repeat), printed in own.items()}
            )
    return replace(
        newest,
        its=baselines[key],
        own=[value for inputs, first in numbered for value in _behind(first, inputs.own)],
        metrics=metrics,
        matrices=tuple(matrix_id for inputs in compared for matrix_id in inputs.matrices),
    )


def _behind(first: int, values: Sequence[Measurement]) -> Iterator[Measurement]:
    """Yield measurements whose rounds are numbered on from one."""
    return (value.in_round(first + value.round) for value in values) if first else iter(values)
