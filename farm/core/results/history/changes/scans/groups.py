"""Groups of series that one cause may move without a new version, and the series that their mean is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from farm.core.results.history.changes.breaks import Catalog
from farm.core.results.history.changes.choice import LEAST_EFFECT
from farm.core.results.history.changes.device_level.levels import DeviceLevels
from farm.core.results.history.changes.differences import SHARED_BASELINE
from farm.core.results.history.changes.noise import CLIP, LEAST_SIGMA, Bools, Floats, Ints, row_medians
from farm.core.results.history.changes.ratios import WINDOW, RatioHistory

#: A file that all devices got moves at least so many of them.
_LEAST_DEVICES = 3
#: A mean of clipped values counts as at most so many standard deviations.
_CLIP_OF_MEAN = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Series with ratios: of a device, a variant of it, or a baseline, or of a variant or network of all."""

    scope: Mapping[str, str]
    rows: Sequence[int]
    #: That of all, if they share one.
    baseline: int | None = None


def groups_of(catalog: Catalog, rows: Iterable[int]) -> list[Group]:
    """Return the groups that these series belong to, with all of their series that have ratios."""
    known = [catalog.series[row] for row in rows]
    found = []
    by_network: dict[tuple[str, str], list[int]] = {}
    for device_row in dict.fromkeys(series.device_row for series in known):
        members = _compared(catalog, catalog.rows_by_device[device_row])
        if len({catalog.series[row].group for row in members}) > 1:
            found.append(Group({"device": catalog.devices[device_row]}, members))
            found += _variants_of_device(catalog, members)
    for key in dict.fromkeys(series.group for series in known):
        members = _compared(catalog, catalog.rows_by_group[key])
        if len(members) > 1:
            scope = {"device": key[0], "network": key[1]}
            found.append(Group(scope, members, catalog.baseline_of(members[0])))
    slots = dict.fromkeys(series.slot for series in known if not series.is_baseline)
    by_slot = {slot: catalog.rows_by_slot[slot] for slot in slots}
    wide = {slot: members for slot, members in by_slot.items() if len(members) >= _LEAST_DEVICES}
    found += [Group({"network": slot[0], "variant": slot[1]}, members) for slot, members in wide.items()]
    # One slot stands for its network: the last that has others beside it.
    for (network, _, harness), members in reversed(wide.items()):
        if (network, harness) in by_network:
            continue
        everything = catalog.siblings_of(members)
        if len(everything) > len(members):
            by_network[network, harness] = everything
    return [*found, *(Group({"network": key[0]}, members) for key, members in by_network.items())]


def _variants_of_device(catalog: Catalog, members: Sequence[int]) -> list[Group]:
    """Return groups of one variant of a device, of several networks or harnesses: a driver moves them."""
    by_variant: dict[str, list[int]] = {}
    for row in members:
        by_variant.setdefault(catalog.series[row].variant, []).append(row)
    if len(by_variant) < 2:
        return []
    device = catalog.series[members[0]].device
    return [
        Group({"device": device, "variant": variant}, rows)
        for variant, rows in by_variant.items()
        if len({catalog.series[row].group for row in rows}) > 1
    ]


def _compared(catalog: Catalog, rows: Iterable[int]) -> list[int]:
    return [row for row in rows if not catalog.series[row].is_baseline]


def moved_baselines(
    catalog: Catalog, levels: DeviceLevels, rows: Sequence[int], tick: int, *, newest: int | None
) -> list[int]:
    """Return the baselines of some series, if in absolute time they moved and not the series; else none.

    Where other series of the same baselines stayed, the baselines did. Where several moved alike beside
    others of their devices, it is more probably their baseline. Where these series are all that is compared
    on their devices, what moves all of them is as probable: the smaller step is the wander of the level.

    Args:
        catalog: of all series.
        levels: of their devices.
        rows: of the series whose ratios moved.
        tick: of the first session that moved.
        newest: how many of the latest sessions show it; None for the first ones since.
    """
    by_baseline: dict[int, list[int]] = {}
    for row in rows:
        baseline = catalog.baseline_of(row)
        if baseline is not None:
            by_baseline.setdefault(baseline, []).append(row)
    if not by_baseline or set(catalog.siblings_of(rows)) - set(rows):
        return []
    steps = [
        own_steps(catalog, levels, own, baseline, tick, newest=newest)
        for baseline, own in by_baseline.items()
    ]
    of_series, of_baselines = (abs(float(np.median(side))) for side in zip(*steps, strict=True))
    devices = {catalog.series[row].device_row for row in rows}
    compared = _compared(catalog, (row for device in devices for row in catalog.rows_by_device[device]))
    is_equal = len(rows) in (len(by_baseline), len(compared))
    did = of_baselines > of_series if is_equal else 2 * of_baselines + LEAST_EFFECT >= of_series
    return list(by_baseline) if did else []


def own_steps(
    catalog: Catalog,
    levels: DeviceLevels,
    rows: Sequence[int],
    baseline: int,
    tick: int,
    *,
    newest: int | None,
) -> tuple[float, float]:
    """Return how far series of a device and their baseline moved in absolute time, beside all others."""
    device = catalog.series[baseline].device_row
    others = [row for row in catalog.rows_by_device[device] if row != baseline and row not in rows]
    own = levels.own_steps(np.array([baseline, *rows, *others]), device, tick, newest=newest)
    rest = own[1 + len(rows) :]
    shared = float(np.nanmedian(rest)) if len(rest) and not np.isnan(rest).all() else 0.0
    moved = own[1 : 1 + len(rows)]
    middle = float(np.nanmedian(moved)) if not np.isnan(moved).all() else 0.0
    return middle - shared, float(np.nan_to_num(own[0])) - shared


def group_scores(catalog: Catalog, ratios: RatioHistory, groups: Sequence[Group]) -> Floats:
    """Return the strongest standard normal score of each group, of a step or a drift.

    Series of one baseline share its noise, and all others are taken for independent.
    """
    rows = np.array(sorted({row for group in groups for row in group.rows}), dtype=np.int64)
    scores, all_weights = ratios.weighted_values(rows)
    place = {int(row): at for at, row in enumerate(rows)}
    members = [place[row] for group in groups for row in group.rows]
    group_at = np.repeat(np.arange(len(groups)), [len(group.rows) for group in groups])
    numbers: dict[tuple[int, tuple[str, str, str]], int] = {}
    keys = [(at, catalog.series[row].group) for at, group in enumerate(groups) for row in group.rows]
    part_at = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    group_of_part = np.array([at for at, _ in numbers])
    weights = all_weights[members]
    top = _sums(scores[members] * weights, group_at, len(groups))
    own = _sums(weights**2, group_at, len(groups))
    every = _sums(_sums(weights, part_at, len(numbers)) ** 2, group_of_part, len(groups))
    variance = (1 - SHARED_BASELINE) * own + SHARED_BASELINE * every
    z: Floats = np.abs(top / np.sqrt(np.maximum(variance, 1e-12))).max(axis=1)
    return z


def _sums(values: Floats, places: Ints, count: int) -> Floats:
    total = np.zeros((count, values.shape[1]))
    np.add.at(total, places, values)
    return total


def group_history(catalog: Catalog, ratios: RatioHistory, groups: Sequence[Group]) -> RatioHistory:
    """Return the mean of each group since the last changes of its series, as a history with a row for each.

    So the noise of a mean is what it was from session to session, and at least that of independent series:
    heat that several feel is not taken for a change of them. The first sessions of a day of all series are
    one of the mean, the second ones another, and so on: devices may have a matrix each.
    """
    values = np.full((len(groups), WINDOW), np.nan)
    ticks = np.zeros((len(groups), WINDOW), dtype=np.int64)
    errors = np.zeros(len(groups))
    for at, group in enumerate(groups):
        rows = np.array(group.rows)
        reference = ratios.reference(rows)
        is_known = ~np.isnan(reference)
        if not is_known.any():
            continue
        numbers = _session_numbers(ratios.days[rows], is_known)[is_known]
        sessions, column = np.unique(numbers, return_inverse=True)
        first = np.full(len(sessions), np.iinfo(np.int64).max)
        np.minimum.at(first, column, ratios.ticks[rows][is_known])
        sigma = ratios.scales.sigma[rows][:, None]
        weights = 1.0 / sigma**2
        centered = np.clip((reference - row_medians(reference)[0][:, None]) / sigma, -CLIP, CLIP) * sigma
        total = np.bincount(column, (centered * weights)[is_known])
        present = np.bincount(column, np.broadcast_to(weights, reference.shape)[is_known])
        latest = min(len(sessions), WINDOW)
        values[at, WINDOW - latest :] = (total / present)[-latest:]
        ticks[at, WINDOW - latest :] = first[-latest:]
        errors[at] = _error(catalog, rows, ratios.scales.sigma[rows])
    history = RatioHistory(
        usual_sigma=LEAST_SIGMA,
        sigma_by_error=1.0,
        clip=_CLIP_OF_MEAN,
        usual_correlation=ratios.usual_correlation,
    )
    history.grow(len(groups))
    for place in range(WINDOW):
        able = np.flatnonzero(~np.isnan(values[:, place]))
        if len(able):
            history.push(able, values[able, place], errors[able], tick=0, day=0)
    history.ticks[: len(groups)] = ticks
    return history


def _session_numbers(days: Ints, is_known: Bools) -> Ints:
    """Return numbers that are equal for the k-th sessions of a day of all rows, and in order of time."""
    begins = np.ones(days.shape, dtype=bool)
    begins[:, 1:] = (days[:, 1:] != days[:, :-1]) | ~is_known[:, :-1]
    places = np.arange(WINDOW)
    return days * WINDOW + places - np.maximum.accumulate(np.where(begins, places, 0), axis=1)


def _error(catalog: Catalog, rows: Ints, sigma: Floats) -> float:
    """Return the standard deviation of the mean of series that share nothing but baselines."""
    weights: dict[tuple[str, str, str], list[float]] = {}
    for row, scale in zip(rows, sigma, strict=True):
        weights.setdefault(catalog.series[row].group, []).append(1.0 / float(scale))
    own = sum(weight**2 for of_part in weights.values() for weight in of_part)
    every = sum(sum(of_part) ** 2 for of_part in weights.values())
    return float(np.sqrt((1 - SHARED_BASELINE) * own + SHARED_BASELINE * every) / own)
