"""Plan of a matrix: its cells and its duration, before anything is queued."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.base.setting_values import non_default_settings
from farm.core.devices.remediation import MESSAGE_BY_BLOCKER
from farm.core.devices.selector import closest_mismatch
from farm.core.matrices.blocks import BLOCK_CANDIDATES, start_count_by_cell
from farm.core.matrices.estimate import Estimate, EstimateBasis, RunHistory, RunKind
from farm.core.matrices.matrix import Cell, MatrixSpec, cell_label_by_axes, group_rejected
from farm.core.models.variant import Manifest, variant_name
from farm.services.devices.views import waiting_reasons
from farm.services.matrices.cell_series import series_by_cell, series_settings
from farm.services.matrices.submit import MatrixExpansion, expand_matrix
from farm.store.devices import devices
from farm.store.jobs import durations as job_durations
from farm.wire.documents.matrices.plans import (
    ExcludedDevice,
    MatrixPlanView,
    PlannedCell,
    PlannedDevice,
    RejectedGroup,
    StandingPlan,
)

_Estimated = Sequence[tuple[Cell, Estimate]]


def plan_matrix(connection: Connection, spec: MatrixSpec) -> MatrixPlanView:
    """Expand a matrix and estimate its duration; nothing is stored. Raises like `expand_matrix`."""
    return plan_expanded(connection, expand_matrix(connection, spec))


def plan_expanded(
    connection: Connection, expanded: MatrixExpansion, *, standing: StandingPlan | None = None
) -> MatrixPlanView:
    """Return the plan of an expanded matrix; `standing` is what letting it stand would queue."""
    spec = expanded.spec
    expansion, varying = expanded.expansion, expanded.varying
    estimated = _estimate(connection, expanded)
    starts_of = start_count_by_cell((cell for cell, _ in estimated), BLOCK_CANDIDATES)
    planned = _planned_devices(connection, expanded, estimated, starts_of)
    label_by_index = {
        cell.index: cell_label_by_axes(cell.key, varying, replica=cell.replica) for cell in expansion.cells
    }
    return MatrixPlanView.of(
        spec,
        harness=spec.harness_text,
        cells=expansion.cell_count,
        rounds=spec.round_range[0],
        max_rounds=spec.round_range[1],
        jobs=sum(device.jobs for device in planned),
        max_jobs=sum(device.max_jobs for device in planned),
        baseline_kind=_baseline_kind(expanded),
        baseline=None if spec.baseline is None else dict(spec.baseline),
        devices=planned,
        left_out=_excluded_devices(expanded),
        rejected=_rejected(expanded),
        uncompared=_uncompared_cells(expanded, label_by_index),
        device_s=sum(device.device_s for device in planned),
        max_device_s=sum(device.max_device_s for device in planned),
        wall_s=(wall_s := _wall_s(connection, planned)),
        max_wall_s=wall_s * spec.round_range[1] / spec.round_range[0],
        is_upper_bound=any(estimate.basis is EstimateBasis.TIMEOUT for _, estimate in estimated),
        cell_list=_planned_cells(expanded, estimated, starts_of, label_by_index),
        standing=standing,
    )


def _labels(expanded: MatrixExpansion) -> dict[DeviceId, str | None]:
    return {device.device_id: device.label for device in expanded.devices}


def _manifests(expanded: MatrixExpansion) -> dict[int, Manifest]:
    return {variant.variant_id: variant.manifest for variant in expanded.variants}


def _estimate(connection: Connection, expanded: MatrixExpansion) -> _Estimated:
    timeout_s = expanded.spec.timeout_s + (expanded.spec.sustained or 0)
    past = RunHistory(
        (
            RunKind(
                series=run.series_digest,
                harness=harness,
                model=run.model,
                device_model=run.device_model,
                settings=frozenset(run.settings.items()),
            ),
            run.seconds,
        )
        for harness in expanded.spec.harnesses
        for run in job_durations.recent_run_durations(connection, harness)
    )
    kind_of = _kinds(expanded)
    return [
        (cell, past.estimate(kind_of[cell.index], timeout_s=timeout_s)) for cell in expanded.expansion.cells
    ]


def _kinds(expanded: MatrixExpansion) -> dict[int, RunKind]:
    """Return by cell the properties of its runs that their duration depends on."""
    manifests = _manifests(expanded)
    device_model_by_id = {device.device_id: device.facts.device_model for device in expanded.devices}
    series = series_by_cell(expanded)
    kind_by_cell: dict[int, RunKind] = {}
    for cell in expanded.expansion.cells:
        settings = series_settings(expanded, cell)
        defaults = expanded.harnesses.named(cell.harness).defaults
        kind_by_cell[cell.index] = RunKind(
            series=series[cell.index],
            harness=cell.harness,
            model=None if cell.variant_id is None else manifests[cell.variant_id].model,
            device_model=device_model_by_id[cell.device_id],
            settings=frozenset(non_default_settings(settings, defaults).items()),
        )
    return kind_by_cell


def _planned_devices(
    connection: Connection,
    expanded: MatrixExpansion,
    estimated: _Estimated,
    starts_of: Mapping[int, int],
) -> tuple[PlannedDevice, ...]:
    ahead = job_durations.queue_lengths(connection, min_priority=expanded.spec.priority)
    by_device: defaultdict[DeviceId, list[Estimate]] = defaultdict(list)
    starts, round_s = Counter[DeviceId](), defaultdict[DeviceId, float](float)
    for cell, estimate in estimated:
        by_device[cell.device_id].append(estimate)
        starts[cell.device_id] += starts_of[cell.index]
        round_s[cell.device_id] += starts_of[cell.index] * estimate.seconds
    waiting = waiting_reasons(connection, by_device)
    rounds, max_rounds = expanded.spec.round_range
    return tuple(
        PlannedDevice.of(
            device,
            device.facts,
            device_label=device.label,
            cells=len(by_device[device.device_id]),
            jobs=starts[device.device_id] * rounds,
            max_jobs=starts[device.device_id] * max_rounds,
            device_s=round_s[device.device_id] * rounds,
            max_device_s=round_s[device.device_id] * max_rounds,
            cells_by_basis=dict(Counter(estimate.basis for estimate in by_device[device.device_id])),
            jobs_ahead=ahead.get(device.device_id, 0),
            waiting_for=tuple(MESSAGE_BY_BLOCKER[blocker] for blocker in waiting.get(device.device_id, ())),
        )
        for device in expanded.devices
        if device.device_id in by_device
    )


def _wall_s(connection: Connection, planned: Sequence[PlannedDevice]) -> float:
    """Return the time of the busiest device, or of the busiest CPU: devices that share one take turns."""
    domain_by_device = {device.device_id: device.cpu_domain for device in devices.list_devices(connection)}
    busy_s: defaultdict[str, float] = defaultdict(float)
    for device in planned:
        busy_s[domain_by_device.get(device.device_id) or f"device {device.device_id}"] += device.device_s
    return max(busy_s.values(), default=0.0)


def _baseline_kind(expanded: MatrixExpansion) -> Literal["relative", "absolute"] | None:
    if expanded.spec.baseline is None:
        return None
    return "relative" if expanded.expansion.anchor is None else "absolute"


def _excluded_devices(expanded: MatrixExpansion) -> tuple[ExcludedDevice, ...]:
    """Return the devices that no selector fits; one that fits has cells, or rejections of its own."""
    expansion = expanded.expansion
    fitting = {cell.device_id for cell in expansion.cells} | {cell.device_id for cell in expansion.rejected}
    return tuple(
        ExcludedDevice.of(
            device,
            device.facts,
            device_label=device.label,
            reason=closest_mismatch(device, expanded.spec.devices),
        )
        for device in expanded.devices
        if device.device_id not in fitting
    )


def _rejected(expanded: MatrixExpansion) -> tuple[RejectedGroup, ...]:
    names = {device.device_id: device.label or device.device_id for device in expanded.devices}
    groups = group_rejected(
        (cell.rejection, cell.reason, cell.hint, label, cell.device_id)
        for cell in expanded.expansion.rejected
        for label in [cell_label_by_axes(cell.key, expanded.varying)]
    )
    return tuple(
        RejectedGroup.of(
            group,
            rejection=group.kind,
            device_ids=tuple(map(DeviceId, group.devices)),
            device_names=tuple(names[DeviceId(device_id)] for device_id in group.devices),
        )
        for group in groups
    )


def _uncompared_cells(expanded: MatrixExpansion, label_by_index: Mapping[int, str]) -> tuple[str, ...]:
    if expanded.spec.baseline is None:
        return ()
    alone = [
        cell for cell in expanded.expansion.cells if cell.baseline_index is None and not cell.is_baseline
    ]
    return tuple(dict.fromkeys(label_by_index[cell.index] for cell in alone))


def _planned_cells(
    expanded: MatrixExpansion,
    estimated: _Estimated,
    starts_of: Mapping[int, int],
    label_by_index: Mapping[int, str],
) -> tuple[PlannedCell, ...]:
    manifests, labels = _manifests(expanded), _labels(expanded)
    return tuple(
        PlannedCell.of(
            cell,
            device_label=labels[cell.device_id],
            label=label_by_index[cell.index],
            variant=None if cell.variant_id is None else _name(manifests[cell.variant_id]),
            settings=non_default_settings(cell.settings, expanded.harnesses.named(cell.harness).defaults),
            baseline=None if cell.baseline_index is None else label_by_index[cell.baseline_index],
            starts=starts_of[cell.index],
            estimate_s=estimate.seconds,
            basis=estimate.basis,
        )
        for cell, estimate in estimated
    )


def _name(manifest: Manifest) -> str:
    return variant_name(manifest.model, manifest.recipe)
