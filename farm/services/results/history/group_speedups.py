"""Speedups over devices that have something in common: each device counts once, with its newest session."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId
from farm.core.base.microseconds import from_microseconds
from farm.core.errors import InvalidInput
from farm.core.models.builders import is_unoptimized
from farm.core.results.history.chosen_labels import ChosenLabels, PairChoice
from farm.core.results.history.session_point import session_interval
from farm.core.results.statistics.interval import bounded_exp
from farm.database.known_at import as_known_at
from farm.services.files.harnesses import get_adapter
from farm.services.matrices.cell_setups import TimedCell, clock_fields
from farm.services.results.history.chosen_cells import candidate_filter
from farm.services.results.history.group_points import (
    GroupSums,
    KnownPoints,
    NewestPoints,
    PointsAgainst,
    add_points,
    points_against,
)
from farm.services.results.history.listed_pairs import PairsAgainst, PairScope, known_labels
from farm.store.matrices.candidates import CandidateFilter
from farm.store.matrices.compared_cells import ComparedCell, ComparedSide, compared_sides
from farm.store.matrices.matrices import newest_matrix_at
from farm.store.results.history.newest_points import (
    Comparison,
    DeviceGroup,
    NewestSums,
    PointPrecision,
    SlotPair,
    list_comparisons,
    precisions_of_points,
)
from farm.store.results.history.stale_points import MeasuredSession
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
    newest: NewestPoints | None = None,
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
        at: as known then, of the sessions that had ended by then; pairs that were not planned also count with
            the rounds that a session still running had by then.
        newest: what another answer as of `at` was made of in this transaction; None: it is computed.

    Raises:
        NotFound: there is no such model, baseline or candidate.
        InvalidInput: too much was retracted or parsed again since `at`; no device has a block of both sides;
            too many pairs were not planned as such; or each device is to be a group, and no candidate is
            given, so that there are as many groups as comparisons on all devices.
    """
    if by is GroupBy.DEVICE and candidate is None:
        raise InvalidInput("a row for each device goes with one candidate", hint="name it: --candidate int8")
    newest = newest or NewestPoints(connection, at=at)
    known = KnownPoints(connection, by, newest, model=model, since=since)
    if not known.comparisons:
        # Maybe there is no such model.
        candidate_filter(connection, device=None, model=model)
    labels = _labels(connection, known, newest.pending, model=model, baseline=baseline, candidate=candidate)
    chosen = [slots for slots, own in known.comparisons.items() if labels.are_of(own.baseline, own.candidate)]
    compared = known.sums(chosen)
    against = _points_against(connection, known, labels, compared, model=model, since=since, at=at)
    further = known.by_group(against.by_slots)
    add_points(compared, further)
    if not any(compared.values()) and labels.baseline is not None and since is None and at is None:
        named = f"`{baseline}` and {'any other cell' if candidate is None else f'`{candidate}`'}"
        raise InvalidInput(
            f"no block with both {named} in the newest matrices of any device",
            hint="a matrix with both measures them side by side",
        )
    comparisons = {**{own.slots: own for own in against.comparisons}, **known.comparisons}
    if further:
        models = {comparisons[slots].model for slots, groups in compared.items() if groups}
        of_devices = known.count_devices_with(comparisons, further, models)
    else:
        of_devices = known.count_devices(compared)
    work = _compared_work(connection, compared, against)
    precisions = _precisions(connection, newest, compared, against) if by is GroupBy.DEVICE else {}
    views = [
        _view(
            by,
            group,
            sums,
            comparisons[slots],
            of_devices=of_devices[comparisons[slots].model, group],
            work=work[slots],
            precision=precisions.get((sums.cell_id, slots.baseline_slot)),
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
    known: KnownPoints,
    pending: Sequence[MeasuredSession],
    *,
    model: str | None,
    baseline: str | None,
    candidate: str | None,
) -> ChosenLabels:
    """Return the labels of both sides; a baseline need not be a planned one. Raises like `PairChoice`."""
    choice = PairChoice(baseline=baseline, candidate=candidate)
    compared = [*known.comparisons.values()]
    if baseline is None:
        return choice.chosen(own.candidate for own in compared)
    if known.stored is None:
        # A label that was compared later is known, too: as of then there is nothing of it.
        compared += list_comparisons(connection)
    return choice.chosen(known_labels(connection, compared, pending, model=model))


def _points_against(
    connection: Connection,
    known: KnownPoints,
    labels: ChosenLabels,
    compared: GroupSums,
    *,
    model: str | None,
    since: datetime | None,
    at: datetime | None,
) -> PointsAgainst:
    """Return the points of pairs that were not planned on their devices, as known at a time.

    Args:
        connection: the database.
        known: the points of planned pairs.
        labels: of both sides; without a baseline, only planned pairs are asked for.
        compared: the sums of planned pairs.
        model: only of this model.
        since: only sessions with a measurement at this time or later.
        at: the time; None: now.
    """
    if labels.baseline is None:
        return PointsAgainst()
    planned = known.computed_on_devices(compared)
    wanted = _wanted_pairs(labels, known.comparisons, compared)
    if (
        known.stored is not None
        and wanted
        and all(any(known.stored.are_of_all_devices(slots) for slots in own) for own in wanted)
    ):
        # All others have planned pairs, without a statement that lists them.
        asked = {*known.stored.without}
    else:
        if known.stored is not None:
            planned |= known.stored.on_devices(compared)
        asked = {*known.group_by_device}
    asked -= _devices_with_all(wanted, planned)
    if not asked:
        return PointsAgainst()
    scope = PairScope(
        until=None if at is None else newest_matrix_at(connection, at),
        since=since,
        which=None,
        pooled=_MATRICES_AGAINST,
    )
    # Words that mean several baselines of a device select among planned pairs, if there are any.
    pairs = PairsAgainst(
        as_known_at(connection, at),
        CandidateFilter(model=model, devices=asked),
        scope,
        labels,
        skip_ambiguous=any(compared.values()),
    )
    return points_against(connection, pairs, without=planned)


def _wanted_pairs(
    labels: ChosenLabels, comparisons: Mapping[SlotPair, Comparison], chosen: Collection[SlotPair]
) -> list[list[SlotPair]]:
    """Return the planned pairs of each model and each two labels that are asked for.

    None at all if labels of candidates are not given, or not known of planned pairs: then it is open which
    pairs there are.
    """
    labels_by_model: defaultdict[str | None, set[str]] = defaultdict(set)
    for own in comparisons.values():
        labels_by_model[own.model] |= {own.baseline, own.candidate}
    if labels.listed is None or not labels.listed <= set(chain.from_iterable(labels_by_model.values())):
        return []
    wanted: dict[tuple[str | None, str, str], list[SlotPair]] = {
        (model, baseline, candidate): []
        for model, its in labels_by_model.items()
        for baseline in labels.baselines_among(its)
        for candidate in its
        if candidate != baseline and labels.is_candidate(candidate)
    }
    for slots in chosen:
        own = comparisons[slots]
        if own.baseline != own.candidate:
            wanted[own.model, own.baseline, own.candidate].append(slots)
    return [*wanted.values()]


def _devices_with_all(
    wanted: Collection[Collection[SlotPair]], planned: Collection[tuple[DeviceId, SlotPair]]
) -> set[DeviceId]:
    """Return the devices that have a planned pair of each of those that are asked for."""
    devices: defaultdict[SlotPair, set[DeviceId]] = defaultdict(set)
    for device_id, slots in planned:
        devices[slots].add(device_id)
    of_each = [set[DeviceId]().union(*(devices[slots] for slots in own)) for own in wanted]
    return set.intersection(*of_each) if of_each else set()


def _precisions(
    connection: Connection, newest: NewestPoints, compared: GroupSums, against: PointsAgainst
) -> dict[tuple[CellId, int | None], PointPrecision]:
    """Return how well the rounds of each point agree, by its cell and its baseline's slot."""
    cells = [sums.cell_id for groups in compared.values() for sums in groups.values()]
    return {
        **precisions_of_points(connection, cells),
        **{(point.cell_id, point.baseline_slot): PointPrecision.of(point) for point in newest.not_stored},
        **against.precisions,
    }


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
    compared_by_slots = {
        slots: ComparedCell(cell, against.baseline_cells.get((cell, slots.baseline_slot)))
        for slots, cell in cell_by_slots.items()
    }
    sides = compared_sides(connection, compared_by_slots.values())
    return {slots: _work_fields(*sides[cell]) for slots, cell in compared_by_slots.items()}


def _work_fields(own: ComparedSide, its: ComparedSide) -> dict[str, Any]:
    """Return the fields about what a candidate and its baseline run."""
    return {
        "unoptimized": own.manifest is not None and is_unoptimized(own.manifest),
        "slow_path": None if own.manifest is None else own.manifest.slow_path,
        "baseline_harness": its.harness,
        "baseline_unoptimized": its.manifest is not None and is_unoptimized(its.manifest),
        "baseline_slow_path": None if its.manifest is None else its.manifest.slow_path,
        **clock_fields(_timed(its), _timed(own)),
    }


def _timed(side: ComparedSide) -> TimedCell:
    return TimedCell(side.harness, get_adapter(side.harness, side.definition), side.settings)


def _view(
    by: GroupBy,
    group: DeviceGroup,
    compared: NewestSums,
    comparison: Comparison,
    *,
    of_devices: int,
    work: Mapping[str, Any],
    precision: PointPrecision | None,
) -> GroupSpeedupView:
    sums = compared.sums
    speedup = math.exp(sums.speedup / sums.devices)
    interval = sums.interval() if sums.devices >= MIN_DEVICES else None
    low, high = (bounded_exp(interval.low), bounded_exp(interval.high)) if interval else (None, None)
    own: dict[str, Any] = {}
    if precision is not None:
        low, high = session_interval(speedup, se_speedup=precision.se_speedup, rounds=precision.rounds)
        own = {"device_id": precision.device_id, "cell_id": compared.cell_id, "rounds": precision.rounds}
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
