"""Candidates for a change: which series, since when, because of what, and how surely."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from farm.core.history.breaks import Catalog, VersionBreak
from farm.core.history.levels import DeviceLevels
from farm.core.history.points import BASELINE, Cause
from farm.core.history.ratios import RatioHistory

#: The least effect: smaller estimates are no change.
LEAST_EFFECT = 0.015
#: Least standard normal scores of planned tests. Several looks are taken, at 2 to 20 sessions.
PLANNED = 3.7
#: Of one series of many that a break concerns, or of a narrower scope: more of them can be found by chance.
PLANNED_NARROW = 4.3
#: In absolute time, whose noise is known less well.
PLANNED_ABSOLUTE = 4.0
#: Sessions after a break, in at least one series, and in all of them together.
_LEAST_AFTER = 2
_LEAST_AFTER_TOTAL = 3
#: Looks end with so many sessions after a break.
_MOST_AFTER = 25
#: Of absolute levels, which wander, sooner.
_MOST_AFTER_ABSOLUTE = 12
#: Ratios of one session share their baseline, and so half of their variance.
_SHARED_BASELINE = 0.5
#: Of the series of a scope, so many move where everything moves together.
TOGETHER = 0.75
_SHARE_OF_STEP = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A change that may be told."""

    cause: Cause
    scope: Mapping[str, str]
    #: Rows of the series that changed, with the tick of the first session of the new level.
    tick_by_row: Mapping[int, int]
    day: int
    z: float
    #: Change of log time.
    size: float
    threshold: float
    #: In absolute time: the ratios stayed.
    is_absolute: bool = False
    break_: VersionBreak | None = None

    @property
    def score(self) -> float:
        """Return twice the log likelihood ratio, less what is asked of such a candidate."""
        return self.z**2 - self.threshold**2

    @property
    def p_value(self) -> float:
        """Return the chance of such a score without any change."""
        return math.erfc(abs(self.z) / math.sqrt(2))


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The contrast of one group of series with one baseline, or of one device."""

    shift: float
    variance: float
    size: float
    degrees: float
    after: int


def _pooled(parts: Sequence[_Evidence]) -> tuple[float, float]:
    """Return score and size of evidence that is independent of each other."""
    weights = np.array([1.0 / (part.variance + 1e-6) for part in parts])
    shifts = np.array([part.shift for part in parts])
    degrees = sum(part.degrees for part in parts)
    t = float((weights * shifts).sum() / math.sqrt(weights.sum()))
    size = float((weights * np.array([part.size for part in parts])).sum() / weights.sum())
    z = math.copysign(math.sqrt(degrees * math.log1p(t * t / degrees)), t)
    return z * (8 * degrees + 1) / (8 * degrees + 3), size


class CandidateFinder:
    """Tests open breaks with the ratios and levels of the farm."""

    def __init__(self, catalog: Catalog, ratios: RatioHistory, levels: DeviceLevels) -> None:
        self._catalog = catalog
        self._ratios = ratios
        self._levels = levels

    def of_break(self, known: VersionBreak) -> list[Candidate]:
        """Return all candidates that a break explains, whether they are significant or not."""
        found = list(self._in_ratios(known))
        if known.cause is not Cause.FILE:
            found += self._in_levels(known, list(known.tick_by_row))
        else:
            alone = [row for row in known.tick_by_row if not self._has_ratio(row)]
            if alone:
                found += self._in_levels(known, alone)
        return found

    def _has_ratio(self, row: int) -> bool:
        if self._catalog.series[row].is_baseline:
            return any(self._ratios.count[other] for other in self._catalog.siblings(row))
        return bool(self._ratios.count[row])

    def evidence(self, tick_by_row: Mapping[int, int]) -> dict[int, _Evidence]:
        """Return the contrast of each row that has sessions before and after."""
        if not tick_by_row:
            return {}
        rows, ticks = np.array(list(tick_by_row)), np.array(list(tick_by_row.values()))
        contrast = self._ratios.contrast(rows, ticks)
        return {
            int(row): _Evidence(
                float(contrast.shift[place]),
                float(contrast.variance[place]),
                float(contrast.size[place]),
                float(contrast.degrees[place]),
                int(contrast.after[place]),
            )
            for place, row in enumerate(rows)
            if contrast.after[place] > 0
        }

    def by_group(self, evidence: Mapping[int, _Evidence]) -> list[_Evidence]:
        """Combine the series of each group, which share the noise of their baseline."""
        rows_by_group: dict[tuple[str, str, str], list[int]] = {}
        for row in evidence:
            rows_by_group.setdefault(self._catalog.series[row].group, []).append(row)
        combined = []
        for rows in rows_by_group.values():
            parts = [evidence[row] for row in rows]
            count = len(parts)
            inflation = (1 + (count - 1) * _SHARED_BASELINE) / count
            combined.append(
                _Evidence(
                    sum(part.shift for part in parts) / count,
                    sum(part.variance for part in parts) / count * inflation,
                    float(np.median([part.size for part in parts])),
                    sum(part.degrees for part in parts) / count,
                    max(part.after for part in parts),
                )
            )
        return combined

    def _in_ratios(self, known: VersionBreak) -> Iterable[Candidate]:
        catalog = self._catalog
        changed = {
            row: tick for row, tick in known.tick_by_row.items() if not catalog.series[row].is_baseline
        }
        if known.cause is Cause.FILE:
            baselines = {
                row: tick for row, tick in known.tick_by_row.items() if catalog.series[row].is_baseline
            }
            siblings = {other: tick for row, tick in baselines.items() for other in catalog.siblings(row)}
            evidence = self._fresh(siblings)
            if evidence:
                yield from self._candidates(
                    known, evidence, siblings, is_baseline=True, scopes=self._file_scopes(evidence)
                )
        evidence = self._fresh(changed)
        if not evidence:
            return
        scopes = self._file_scopes(evidence) if known.cause is Cause.FILE else self._scopes(known, evidence)
        yield from self._candidates(known, evidence, changed, is_baseline=False, scopes=scopes)
        if known.cause is not Cause.FILE:
            networks = {catalog.series[row].network for row in evidence}
            by_network = [
                ({**self._version(known), "network": network, "variant": BASELINE}, rows)
                for network in sorted(networks)
                if self._all_move_alike(
                    rows := {row: e for row, e in evidence.items() if catalog.series[row].network == network}
                )
            ]
            yield from self._candidates(known, evidence, changed, is_baseline=True, scopes=by_network)

    def _fresh(self, tick_by_row: Mapping[int, int]) -> dict[int, _Evidence]:
        evidence = self.evidence(tick_by_row)
        if not evidence or min(part.after for part in evidence.values()) > _MOST_AFTER:
            return {}
        return evidence

    def _all_move_alike(self, evidence: Mapping[int, _Evidence]) -> bool:
        """Return whether two or more variants of a network moved by the same, which one baseline does."""
        by_variant: dict[str, list[float]] = {}
        for row, part in evidence.items():
            by_variant.setdefault(self._catalog.series[row].variant, []).append(part.size)
        sizes = [float(np.mean(values)) for values in by_variant.values()]
        if len(sizes) < 2 or max(sizes) * min(sizes) <= 0:
            return False
        return min(map(abs, sizes)) >= 0.5 * max(map(abs, sizes))

    @staticmethod
    def _version(known: VersionBreak) -> dict[str, str]:
        return {} if known.cause is Cause.FILE else {str(known.cause): known.version}

    def _file_scopes(
        self, evidence: Mapping[int, _Evidence]
    ) -> list[tuple[dict[str, str], Mapping[int, _Evidence]]]:
        any_row = next(iter(evidence))
        series = self._catalog.series[any_row]
        whole: list[tuple[dict[str, str], Mapping[int, _Evidence]]] = [
            ({"network": series.network, "variant": series.variant}, evidence)
        ]
        by_device = self._partition(evidence, lambda row: (self._catalog.series[row].device,))
        if len(by_device) < 2:
            return whole
        return [*whole, *(({"device": device}, rows) for (device,), rows in by_device.items())]

    def _partition(
        self, evidence: Mapping[int, _Evidence], key: Callable[[int], tuple[str, ...]]
    ) -> dict[tuple[str, ...], dict[int, _Evidence]]:
        parts: dict[tuple[str, ...], dict[int, _Evidence]] = {}
        for row, part in evidence.items():
            parts.setdefault(key(row), {})[row] = part
        return parts

    def _scopes(
        self, known: VersionBreak, evidence: Mapping[int, _Evidence]
    ) -> list[tuple[dict[str, str], Mapping[int, _Evidence]]]:
        """Return all series of a program or a build, and its parts: networks, variants, devices."""
        series, version = self._catalog.series, self._version(known)
        scopes: list[tuple[dict[str, str], Mapping[int, _Evidence]]] = [(version, evidence)]
        keys: list[tuple[tuple[str, ...], Callable[[int], tuple[str, ...]]]] = [
            (("network",), lambda row: (series[row].network,)),
            (("variant",), lambda row: (series[row].variant,)),
            (("network", "variant"), lambda row: (series[row].network, series[row].variant)),
            (("device",), lambda row: (series[row].device,)),
            (
                ("device", "network", "variant"),
                lambda row: (series[row].device, series[row].network, series[row].variant),
            ),
        ]
        for names, key in keys:
            parts = self._partition(evidence, key)
            if len(parts) < 2:
                continue
            scopes += [
                ({**version, **dict(zip(names, values, strict=True))}, rows) for values, rows in parts.items()
            ]
        return scopes

    def _candidates(
        self,
        known: VersionBreak,
        evidence: Mapping[int, _Evidence],
        tick_by_row: Mapping[int, int],
        *,
        is_baseline: bool,
        scopes: Iterable[tuple[dict[str, str], Mapping[int, _Evidence]]],
    ) -> Iterable[Candidate]:
        sign = -1.0 if is_baseline else 1.0
        for place, (scope, rows) in enumerate(scopes):
            afters = [part.after for part in rows.values()]
            is_one = len(rows) == 1 or (
                is_baseline and len({self._catalog.series[r].group for r in rows}) == 1
            )
            if max(afters) < _LEAST_AFTER + is_one or sum(afters) < _LEAST_AFTER_TOTAL:
                continue
            z, size = _pooled(self.by_group(rows))
            changed = {row: tick_by_row[row] for row in rows}
            if is_baseline:
                changed = {
                    baseline: tick
                    for row, tick in changed.items()
                    if (baseline := self._catalog.baseline_of(row)) is not None
                }
                scope = {**scope, "variant": BASELINE}
            yield Candidate(
                cause=known.cause,
                scope=scope,
                tick_by_row=changed,
                day=min(known.day_by_row.get(row, known.day) for row in changed),
                z=z,
                size=sign * size,
                threshold=PLANNED
                if place == 0 and not (is_baseline and known.cause is not Cause.FILE)
                else PLANNED_NARROW,
                break_=known,
            )

    def _in_levels(self, known: VersionBreak, rows: Sequence[int]) -> Iterable[Candidate]:
        """Test whether the absolute times of all series of a break moved together."""
        catalog, levels = self._catalog, self._levels
        by_device: dict[int, list[int]] = {}
        for row in rows:
            by_device.setdefault(catalog.series[row].device_row, []).append(row)
        parts: dict[int, _Evidence] = {}
        ticks: dict[int, int] = {}
        moved, counted = 0, 0
        for device, members in by_device.items():
            tick = ticks[device] = min(known.tick_by_row[row] for row in members)
            others = [row for row in catalog.rows_by_device[device] if row not in known.tick_by_row]
            step, variance, after = levels.planned(
                device, tick, np.array(members), np.array(others, dtype=np.int64)
            )
            if not after or after > _MOST_AFTER_ABSOLUTE:
                continue
            parts[device] = _Evidence(step, variance, step, 12.0, after)
        if not parts or max(p.after for p in parts.values()) < _LEAST_AFTER:
            return
        z, size = _pooled(list(parts.values()))
        for device in parts:
            own = levels.own_steps(np.array(by_device[device]), device, ticks[device])
            own = own[~np.isnan(own)]
            moved += int((np.sign(size) * own >= _SHARE_OF_STEP * abs(size)).sum())
            counted += len(own)
        version = self._version(known)
        if known.cause is Cause.FILE:
            first = catalog.series[rows[0]]
            version = {"network": first.network, "variant": first.variant}

        def candidate(
            scope: dict[str, str], devices: Iterable[int], z: float, size: float, least: float
        ) -> Candidate:
            changed = {row: known.tick_by_row[row] for device in devices for row in by_device[device]}
            return Candidate(
                cause=known.cause,
                scope=scope,
                tick_by_row=changed,
                day=min(known.day_by_row[row] for row in changed),
                z=z,
                size=size,
                threshold=least,
                is_absolute=True,
                break_=known,
            )

        if moved >= TOGETHER * counted:
            yield candidate(version, parts, z, size, PLANNED_ABSOLUTE)
        if len(parts) > 1 and known.cause is Cause.OS:
            for device, part in parts.items():
                z, size = _pooled([part])
                own = levels.own_steps(np.array(by_device[device]), device, ticks[device])
                own = own[~np.isnan(own)]
                if (
                    part.after > _LEAST_AFTER
                    and (np.sign(size) * own >= _SHARE_OF_STEP * abs(size)).mean() >= TOGETHER
                ):
                    scope = {**version, "device": catalog.devices[device]}
                    yield candidate(scope, [device], z, size, PLANNED_NARROW)


def strongest(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the candidate that explains most, of those that reach their thresholds."""
    able = [c for c in candidates if abs(c.z) >= c.threshold and abs(c.size) >= LEAST_EFFECT]
    return max(able, key=lambda c: c.score, default=None)
