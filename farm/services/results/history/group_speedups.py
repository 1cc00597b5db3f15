"""Speedups over devices that have something in common: each device counts once, with its newest session."""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId
from farm.core.base.microseconds import from_microseconds
from farm.core.errors import InvalidInput
from farm.core.results.history.chosen_labels import ChosenLabels, PairChoice
from farm.core.results.history.session_point import session_interval
from farm.core.results.statistics.interval import bounded_exp
from farm.database.known_at import as_known_at
from farm.services.matrices.cell_setups import cell_setups
from farm.services.results.history.chosen_cells import candidate_filter
from farm.services.results.history.group_points import (
    StoredPoints,
    count_devices,
    devices_of,
    newest_points_at,
    points_by_group,
    with_older,
    with_points,
)
from farm.services.results.history.listed_pairs import PairScope, PointsAgainst, known_labels, points_against
from farm.services.results.history.session_points import pending_points
from farm.store.matrices.candidates import CandidateFilter
from farm.store.matrices.matrices import cells_by_id, newest_matrix_at, planned_baselines
from farm.store.results.history.newest_points import (
    Comparison,
    DeviceGroup,
    NewestSums,
    PointError,
    SlotPair,
    compared_on_devices,
    comparisons_of_points,
    errors_of_points,
    list_comparisons,
)
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView

#: Devices of which a group has an interval.
MIN_DEVICES = 3
#: The newest matrices with both sides in which a block of both is looked for, where they planned no pair.
_MATRICES_AGAINST = 3


def group_speedups(
    connection: Connection,
    by: GroupBy,
    *,
    model: str | None = None,
    baseline: str | None = None,
    candidate: str | None = None,
    since: datetime | None = None,
    at: datetime | None = None,
) -> list[GroupSpeedupView]:
    """Return the speedup of each comparison over the devices of each group.

    Devices are counted, not rounds: of one device there may be a thousand, which say nothing of the next.
    Virtual devices are groups of their own.

    Args:
        connection: the database.
        by: what the devices of a group have in common.
        model: only of this model.
        baseline: only against cells with these words in their label, planned as baselines or not.
        candidate: only candidates with these words in their label.
        since: only devices with a measurement at this time or later.
        at: as known then, of the sessions that had ended by then.

    Raises:
        NotFound: there is no such model, baseline or candidate.
        InvalidInput: too much was retracted or parsed again since `at`; no device has a block of both sides;
            too many pairs were not planned as such; or each device is to be a group, and no candidate is
            given, so that there are as many groups as comparisons on all devices.
    """
    if by is GroupBy.DEVICE and candidate is None:
        raise InvalidInput("a row for each device goes with one candidate", hint="name it: --candidate int8")
    if at is None:
        pending = pending_points(connection)
        not_stored = [*chain.from_iterable(pending.values())]
        computed = with_older(connection, pending)
        known = [*list_comparisons(connection), *comparisons_of_points(connection, computed)]
    else:
        pending = {}
        computed, not_stored = newest_points_at(connection, at)
        known = comparisons_of_points(connection, computed)
    comparisons = {own.slots: own for own in reversed(known) if model is None or own.model == model}
    if not comparisons:
        # Maybe there is no such model.
        candidate_filter(connection, device=None, model=model)
    labels = _labels(connection, comparisons.values(), baseline=baseline, candidate=candidate)
    chosen = {
        slots: own
        for slots, own in comparisons.items()
        if (labels.baseline is None or own.baseline in labels.baseline) and labels.is_candidate(own.candidate)
    }
    of_computed = points_by_group(connection, by, computed, since=since)
    stored = StoredPoints(connection, by, since=since, without={session.device_id for session in pending})
    compared: dict[SlotPair, dict[DeviceGroup, NewestSums]] = {}
    for slots in chosen:
        sums = stored.sums(slots) if at is None else {}
        for group, points in of_computed.get(slots, {}).items():
            sums[group] = with_points(sums.get(group), points)
        compared[slots] = sums
    of_devices = Counter({key: len(own) for key, own in devices_of(comparisons, of_computed).items()})
    if at is None:
        for name in {own.model for own in chosen.values()}:
            of_model = {slots: compared[slots] for slots, own in chosen.items() if own.model == name}
            for group, devices in stored.devices_with_model(name, of_model).items():
                of_devices[name, group] += devices
    against = PointsAgainst()
    if labels.baseline is not None:
        planned = {
            (point.device_id, slots)
            for slots in chosen
            for points in of_computed.get(slots, {}).values()
            for point in points
        }
        if at is None:
            planned |= compared_on_devices(connection, chosen, since=since)
        against = _points_against(connection, labels, model=model, since=since, at=at, without=planned)
        comparisons = {**{own.slots: own for own in against.comparisons}, **comparisons}
        further = points_by_group(connection, by, against.by_slots, since=since)
        for slots, groups in further.items():
            own = compared.setdefault(slots, {})
            for group, points in groups.items():
                own[group] = with_points(own.get(group), points)
        of_devices |= count_devices(connection, by, comparisons, of_computed, further, since=since, at=at)
        if not any(compared.values()) and since is None and at is None:
            named = f"`{baseline}` and {'any other cell' if candidate is None else f'`{candidate}`'}"
            raise InvalidInput(
                f"no block with both {named} in the newest matrices of any device",
                hint="a matrix with both measures them side by side",
            )
    work = _compared_work(connection, compared, against)
    errors: Mapping[tuple[CellId, int | None], PointError] = {}
    if by is GroupBy.DEVICE:
        own_cells = [sums.cell_id for groups in compared.values() for sums in groups.values()]
        errors = {
            **errors_of_points(connection, own_cells),
            **{(point.cell_id, point.baseline_slot): PointError.of(point) for point in not_stored},
            **against.errors,
        }
    views = [
        _view(
            by,
            group,
            sums,
            comparisons[slots],
            of_devices=of_devices[comparisons[slots].model, group],
            work=work[slots],
            error=errors.get((sums.cell_id, slots.baseline_slot)),
        )
        for slots, groups in compared.items()
        for group, sums in groups.items()
    ]
    return sorted(
        views,
        key=lambda view: (view.group or "", view.virtual, view.model or "", view.baseline, view.candidate),
    )


def _labels(
    connection: Connection,
    comparisons: Collection[Comparison],
    *,
    baseline: str | None,
    candidate: str | None,
) -> ChosenLabels:
    """Return the labels of both sides; a baseline need not be a planned one. Raises like `PairChoice`."""
    choice = PairChoice(baseline=baseline, candidate=candidate)
    if baseline is None:
        return choice.chosen(own.candidate for own in comparisons)
    planned = {label for own in comparisons for label in (own.baseline, own.candidate)}
    return choice.chosen(planned | known_labels(connection))


def _points_against(
    connection: Connection,
    labels: ChosenLabels,
    *,
    model: str | None,
    since: datetime | None,
    at: datetime | None,
    without: Collection[tuple[DeviceId, SlotPair]],
) -> PointsAgainst:
    """Return the points of pairs that were not planned on their devices, as known at a time."""
    scope = PairScope(
        until=None if at is None else newest_matrix_at(connection, at),
        since=since,
        which=None,
        pooled=_MATRICES_AGAINST,
    )
    then = as_known_at(connection, at)
    return points_against(then, CandidateFilter(model=model), scope, labels, without=without)


def _compared_work(
    connection: Connection,
    compared: Mapping[SlotPair, Mapping[DeviceGroup, NewestSums]],
    against: PointsAgainst,
) -> dict[SlotPair, dict[str, Any]]:
    """Return the fields about what both sides of each comparison run, by its newest cells."""
    cell_by_slots = {
        slots: max(groups.values(), key=lambda sums: sums.ended_us).cell_id
        for slots, groups in compared.items()
        if groups
    }
    if not cell_by_slots:
        return {}
    chosen = {
        slots: against.baseline_cells[cell, slots.baseline_slot]
        for slots, cell in cell_by_slots.items()
        if (cell, slots.baseline_slot) in against.baseline_cells
    }
    row_by_id = {
        row.cell_id: row for row in cells_by_id(connection, {*cell_by_slots.values(), *chosen.values()})
    }
    planned = planned_baselines(connection, [cell_by_slots[slots] for slots in cell_by_slots.keys() - chosen])
    planned_by_place = {(row.matrix_id, row.index): row for row in planned}
    setups = cell_setups(connection, [*row_by_id.values(), *planned])
    work = {}
    for slots, cell in cell_by_slots.items():
        candidate = row_by_id[cell]
        if slots in chosen:
            baseline = row_by_id[chosen[slots]]
        else:
            baseline = planned_by_place[candidate.matrix_id, candidate.baseline_index or 0]
        own, its = setups.setup(candidate), setups.setup(baseline)
        work[slots] = {
            "unoptimized": own.unoptimized,
            "slow_path": own.slow_path,
            "baseline_harness": its.harness,
            "baseline_unoptimized": its.unoptimized,
            "baseline_slow_path": its.slow_path,
            **setups.clocks(baseline, candidate),
        }
    return work


def _view(
    by: GroupBy,
    group: DeviceGroup,
    compared: NewestSums,
    comparison: Comparison,
    *,
    of_devices: int,
    work: Mapping[str, Any],
    error: PointError | None,
) -> GroupSpeedupView:
    sums = compared.sums
    speedup = math.exp(sums.speedup / sums.devices)
    interval = sums.interval() if sums.devices >= MIN_DEVICES else None
    low, high = (bounded_exp(interval.low), bounded_exp(interval.high)) if interval else (None, None)
    own: dict[str, Any] = {}
    if error is not None:
        low, high = session_interval(speedup, se_speedup=error.se_speedup, rounds=error.rounds)
        own = {"device_id": error.device_id, "cell_id": compared.cell_id, "rounds": error.rounds}
    return GroupSpeedupView(
        by=by,
        group="all devices" if by is GroupBy.ALL else group.trait,
        virtual=group.virtual,
        model=comparison.model,
        harness=comparison.harness,
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        devices=sums.devices,
        of_devices=of_devices,
        speedup=speedup,
        ci_low=low,
        ci_high=high,
        low=math.exp(sums.least),
        high=math.exp(sums.most),
        baseline_ns=math.exp(sums.baseline / sums.devices),
        candidate_ns=math.exp(sums.time / sums.devices),
        measured_until=from_microseconds(compared.ended_us),
        **own,
        **work,
    )
