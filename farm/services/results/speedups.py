"""What is faster than what, per device, from the accepted measurements of a matrix."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, FactsId, MatrixId, SeriesId
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.base.spec_errors import name_hint
from farm.core.devices.device import DeviceFacts
from farm.core.errors import NotFound
from farm.core.results.pairing import paired_rounds
from farm.core.results.speedup import Speedup, speedup
from farm.services.devices.software_updates import builds_of
from farm.services.devices.views import device_named
from farm.services.files.adapters import default_of_flags
from farm.services.matrices.views import first_page_size
from farm.store.devices import devices
from farm.store.files import variants as variant_store
from farm.store.matrices import matrices
from farm.store.matrices.comparison_pages import CandidateFilter, page_of_candidates
from farm.store.matrices.matrices import CellRow, Matrix, get_matrix
from farm.store.results import measurements
from farm.store.results.measurements import Measurement
from farm.wire.documents.matrices.matrices import SpeedupView

#: To whoever asks what comes behind something else.
AFTER_HINT = "`after` is the cell_id of the last comparison on the page before"
#: Of comparisons that are shown together there are so many at most.
PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupInputs:
    """A candidate with what was measured of it and of its baseline, not compared yet."""

    matrix: Matrix
    baseline: CellRow
    candidate: CellRow
    #: Of baseline and candidate, oldest first.
    sides: tuple[Sequence[Measurement], Sequence[Measurement]]
    builds: Mapping[FactsId, int]
    defaults: Mapping[str, SettingValue]

    @property
    def series(self) -> tuple[SeriesId | None, SeriesId | None]:
        """What is compared, in whatever matrix; None for a side of which nothing was measured."""
        baseline, candidate = (side[-1].series_id if side else None for side in self.sides)
        return baseline, candidate

    def view(self, facts: DeviceFacts | None, *, across_controls: bool = False) -> SpeedupView:
        """The comparison."""
        pairs, excluded = paired_rounds(*self.sides, builds=self.builds, across_controls=across_controls)
        found = speedup(pairs, excluded=excluded, margin=self.matrix.spec["equivalence_margin"])
        until = max((m.measured_at for side in self.sides for m in side), default=self.matrix.created_at)
        settings = non_default_settings(self.candidate.settings, self.defaults)
        return _view(self.matrix, self.baseline, self.candidate, settings, found, facts, until)


def list_speedups(
    connection: Connection,
    matrix_id: MatrixId,
    *,
    device: str | None = None,
    model: str | None = None,
    across_controls: bool = False,
    after: CellId | None = None,
    limit: int = PAGE,
) -> list[SpeedupView]:
    """A page of the comparisons of a matrix, by the places of their candidates; none at the end.

    Args:
        connection: the database.
        matrix_id: of this matrix.
        device: only on this device: its id, its label, or the beginning of either.
        model: only of this model.
        across_controls: whether rounds count in which the phone was controlled in different degrees.
        after: only those behind the one of this candidate.
        limit: so many at most, and fewer where a matrix has many rounds.

    Raises:
        NotFound: there is no such matrix, device, model or candidate.
        InvalidInput: several devices begin so.
    """
    device_id = None if device is None else device_named(connection, device).device_id
    if model is not None:
        check_model(connection, model)
    matrix = get_matrix(connection, matrix_id)
    behind = -1 if after is None else _candidate(connection, matrix_id, after).index
    among = CandidateFilter(device_id=device_id, model=model)
    size = min(limit, first_page_size(matrix))
    candidates = page_of_candidates(connection, matrix_id, among, after=behind, limit=size)
    facts = facts_of_devices(connection)
    return [
        each.view(facts.get(each.candidate.device_id), across_controls=across_controls)
        for each in comparisons_of(connection, matrix, candidates)
    ]


def facts_of_devices(connection: Connection) -> dict[DeviceId, DeviceFacts | None]:
    """What each phone is now."""
    return {row.device_id: row.facts for row in devices.list_devices(connection)}


def comparisons_of(
    connection: Connection, matrix: Matrix, candidates: Sequence[CellRow]
) -> Iterator[SpeedupInputs]:
    """Candidates of a matrix with their baselines; those without one are left out."""
    wanted = {cell.baseline_index for cell in candidates if cell.baseline_index is not None}
    baselines = {cell.index: cell for cell in matrices.cells_at(connection, matrix.matrix_id, wanted)}
    both = {cell.cell_id for cell in (*candidates, *baselines.values())}
    measured: defaultdict[CellId, list[Measurement]] = defaultdict(list)
    for measurement in measurements.accepted_of_cells(connection, both):
        measured[measurement.cell_id].append(measurement)
    snapshots: defaultdict[DeviceId, set[FactsId | None]] = defaultdict(set)
    for cell in (*candidates, *baselines.values()):
        snapshots[cell.device_id] |= {each.facts_id for each in measured.get(cell.cell_id, ())}
    builds = {device_id: builds_of(connection, found) for device_id, found in snapshots.items()}
    defaults = default_of_flags(connection, matrix.harness)
    for cell in candidates:
        if cell.baseline_index is not None:
            baseline = baselines[cell.baseline_index]
            yield SpeedupInputs(
                matrix=matrix,
                baseline=baseline,
                candidate=cell,
                sides=(measured.get(baseline.cell_id, ()), measured.get(cell.cell_id, ())),
                builds=builds[cell.device_id],
                defaults=defaults,
            )


def _candidate(connection: Connection, matrix_id: MatrixId, cell_id: CellId) -> CellRow:
    cell = matrices.find_cell(connection, cell_id)
    if cell is None or cell.matrix_id != matrix_id:
        raise NotFound(f"matrix {matrix_id} has no cell {cell_id}", hint=AFTER_HINT)
    return cell


def check_model(connection: Connection, model: str) -> None:
    """Raise NotFound where no variant is of a model."""
    known = {variant.manifest.model for variant in variant_store.list_variants(connection)}
    if model not in known:
        raise NotFound(f"no model `{model}`", hint=name_hint(model, known) or "the farm has no models yet")


def _view(
    matrix: Matrix,
    baseline: CellRow,
    candidate: CellRow,
    settings: dict[str, SettingValue],
    found: Speedup,
    facts: DeviceFacts | None,
    until: datetime,
) -> SpeedupView:
    return SpeedupView(
        matrix_id=matrix.matrix_id,
        cell_id=candidate.cell_id,
        baseline_cell_id=baseline.cell_id,
        device=candidate.device_id,
        device_model=facts.device_model if facts else None,
        soc=facts.soc if facts else None,
        model=candidate.model,
        harness=matrix.harness,
        baseline=baseline.label,
        candidate=candidate.label,
        settings=settings,
        speedup=found.ratio,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        rounds=found.rounds,
        excluded=len(found.excluded),
        verdict=found.verdict,
        reason=found.reason,
        baseline_ns=found.baseline_ns,
        candidate_ns=found.candidate_ns,
        difference_ns=found.difference_ns,
        detectable=found.detectable,
        aa=candidate.replica > 1,
        virtual=facts.virtual if facts else False,
        measured_until=until,
    )
