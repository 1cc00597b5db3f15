"""What is faster than what, per device, from the accepted measurements of a matrix."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.device import DeviceFacts
from farm.core.errors import NotFound
from farm.core.ids import CellId, DeviceId, FactsId, MatrixId, SeriesId
from farm.core.pairing import paired_rounds
from farm.core.plan import SettingValue
from farm.core.problem import name_hint
from farm.core.series import non_default_settings
from farm.core.speedup import Speedup, speedup
from farm.services.adapters import default_of_flags
from farm.services.devices import device_named
from farm.services.matrices import get_matrix
from farm.services.updates import builds_of
from farm.store import catalog, devices, matrices, measurements
from farm.store.matrices import CellRow, Matrix
from farm.store.measurements import Measurement
from farm.wire.views import SpeedupView

_Identity = tuple[SeriesId | None, SeriesId | None, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A comparison, and what is compared in it, so that a newer one can take its place."""

    identity: _Identity
    view: SpeedupView


def list_speedups(
    connection: Connection,
    *,
    matrix_id: MatrixId | None = None,
    device: str | None = None,
    model: str | None = None,
    across_controls: bool = False,
) -> list[SpeedupView]:
    """Comparisons of one matrix, or else the newest of each pair of series over all matrices.

    Args:
        connection: the database.
        matrix_id: only of this matrix.
        device: only on this device: its id, its label, or the beginning of either.
        model: only of this model.
        across_controls: whether rounds count in which the phone was controlled in different degrees.

    Raises:
        NotFound: there is no such matrix, device or model.
        InvalidInput: several devices begin so.
    """
    device_id = None if device is None else device_named(connection, device).device_id
    if model is not None:
        _check_model(connection, model)
    facts = {row.device_id: row.facts for row in devices.list_devices(connection)}
    if matrix_id is not None:
        matrix = get_matrix(connection, matrix_id)
        rows = _rows(connection, matrix, facts, across_controls=across_controls)
    else:
        rows = _newest(connection, facts, across_controls=across_controls)
    return [
        row.view for row in rows if device_id in (None, row.view.device) and model in (None, row.view.model)
    ]


def _check_model(connection: Connection, model: str) -> None:
    known = {variant.manifest.model for variant in catalog.list_variants(connection)}
    if model not in known:
        raise NotFound(f"no model `{model}`", hint=name_hint(model, known) or "the farm has no models yet")


def _newest(
    connection: Connection, facts: Mapping[DeviceId, DeviceFacts | None], *, across_controls: bool
) -> list[_Row]:
    """Of each pair, what the newest matrix with any usable round says."""
    found: dict[_Identity, _Row] = {}
    for matrix in matrices.list_matrices(connection):
        for row in _rows(connection, matrix, facts, across_controls=across_controls):
            if row.view.speedup is not None:
                found.setdefault(row.identity, row)
    return sorted(found.values(), key=_place)


def _place(row: _Row) -> tuple[str, str, int]:
    return row.view.device, row.view.model or "", -row.view.matrix_id


def _rows(
    connection: Connection,
    matrix: Matrix,
    facts: Mapping[DeviceId, DeviceFacts | None],
    *,
    across_controls: bool,
) -> list[_Row]:
    cells = matrices.list_cells(connection, matrix.matrix_id)
    cell_by_index = {cell.index: cell for cell in cells}
    measured: defaultdict[CellId, list[Measurement]] = defaultdict(list)
    for measurement in measurements.accepted_measurements(connection, matrix.matrix_id):
        measured[measurement.cell_id].append(measurement)
    defaults = default_of_flags(connection, matrix.harness)
    snapshots: defaultdict[DeviceId, set[FactsId | None]] = defaultdict(set)
    for cell in cells:
        snapshots[cell.device_id] |= {each.facts_id for each in measured.get(cell.cell_id, ())}
    builds = {device_id: builds_of(connection, found) for device_id, found in snapshots.items()}
    return [
        _row(
            matrix,
            cell_by_index[cell.baseline_index],
            cell,
            measured,
            builds[cell.device_id],
            facts.get(cell.device_id),
            defaults,
            across_controls=across_controls,
        )
        for cell in cells
        if cell.baseline_index is not None
    ]


def _row(
    matrix: Matrix,
    baseline: CellRow,
    candidate: CellRow,
    measured: Mapping[CellId, Sequence[Measurement]],
    builds: Mapping[FactsId, int],
    facts: DeviceFacts | None,
    defaults: Mapping[str, SettingValue],
    *,
    across_controls: bool,
) -> _Row:
    sides = [measured.get(cell.cell_id, ()) for cell in (baseline, candidate)]
    pairs, excluded = paired_rounds(*sides, builds=builds, across_controls=across_controls)
    found = speedup(pairs, excluded=excluded, margin=matrix.spec["equivalence_margin"])
    until = max((m.measured_at for side in sides for m in side), default=matrix.created_at)
    series = [side[-1].series_id if side else None for side in sides]
    is_twin = candidate.replica > 1
    settings = non_default_settings(candidate.settings, defaults)
    view = _view(matrix, baseline, candidate, settings, found, facts, until)
    return _Row(identity=(series[0], series[1], is_twin), view=view)


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
