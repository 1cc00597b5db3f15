"""Planned tests of ratios: all series with a new version, and parts of them."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from farm.core.results.history.changes.breaks import Catalog, VersionBreak
from farm.core.results.history.changes.choice import Candidate
from farm.core.results.history.changes.device_level.beside_level import BesideLevel
from farm.core.results.history.changes.differences import FEW_DEGREES, Difference, Pooled, is_sure, pooled
from farm.core.results.history.changes.planned.conditions import (
    LEAST_AFTER,
    MOST_AFTER,
    PLANNED,
    PLANNED_NARROW,
    SHARE_OF_STEP,
    are_most_fresh,
    begins_elsewhere,
)
from farm.core.results.history.changes.planned.ratio_evidence import RatioEvidence
from farm.core.results.history.changes.planned.scopes import (
    Scope,
    baseline_scopes,
    is_alone,
    is_in_scope,
    scopes_of,
)
from farm.core.results.history.changes.points import BASELINE, Cause
from farm.core.results.history.changes.ratios import RatioHistory

#: Sessions after a break, in all series together.
_LEAST_AFTER_TOTAL = 3
#: With fewer, or so few before, each may be an outlier: only large steps count, with heavy tails.
_FEW = 3


class RatioTests:
    """Tests open breaks with the ratios of the farm."""

    def __init__(
        self, catalog: Catalog, ratios: RatioHistory, evidence: RatioEvidence, beside_level: BesideLevel
    ) -> None:
        self._catalog = catalog
        self._ratios = ratios
        self._evidence = evidence
        self._beside_level = beside_level

    def candidates(self, known: VersionBreak) -> Iterable[Candidate]:
        """Yield what a break may have changed, whether it is significant or not."""
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
                    known, evidence, siblings, is_baseline=True, scopes=scopes_of(catalog, known, evidence)
                )
        evidence = self._fresh(changed)
        if not evidence:
            return
        if known.cause is Cause.FILE:
            evidence = self._beside_level.more_precise(evidence, changed)
        scopes = scopes_of(catalog, known, evidence)
        yield from self._candidates(known, evidence, changed, is_baseline=False, scopes=scopes)
        if known.cause is not Cause.FILE:
            scopes = baseline_scopes(catalog, known, evidence)
            yield from self._candidates(known, evidence, changed, is_baseline=True, scopes=scopes)

    def _fresh(self, tick_by_row: Mapping[int, int]) -> dict[int, Difference]:
        """Return what series show of their new version, if it is new to half of them: else it was tested."""
        evidence = self._evidence.of(tick_by_row)
        return evidence if are_most_fresh([part.after for part in evidence.values()]) else {}

    def _candidates(
        self,
        known: VersionBreak,
        evidence: Mapping[int, Difference],
        tick_by_row: Mapping[int, int],
        *,
        is_baseline: bool,
        scopes: Iterable[Scope],
    ) -> Iterable[Candidate]:
        sign = -1.0 if is_baseline else 1.0
        # Series of a scope without sessions that can be compared belong to it, too.
        unknown = tick_by_row.keys() - evidence.keys()
        for place, (scope, rows) in enumerate(scopes):
            is_whole = place == 0 and not (is_baseline and known.cause is not Cause.FILE)
            if min(part.after for part in rows.values()) > MOST_AFTER:
                continue
            has_one_baseline = len({self._catalog.series[row].group for row in rows}) == 1
            least_sure = 1
            if has_one_baseline and not (is_whole and is_alone(self._catalog, rows)):
                least_sure = LEAST_AFTER
            is_one = len(rows) == 1 or (is_baseline and has_one_baseline)
            mean = self._mean(rows, tick_by_row, is_one=is_one, least_sure=least_sure)
            least = PLANNED if is_whole else PLANNED_NARROW
            if mean is None or not self._is_shared(rows, mean):
                continue
            if abs(mean.z) >= least and self._began_elsewhere(rows, tick_by_row):
                continue
            changed = {
                row: tick
                for row, tick in tick_by_row.items()
                if row in rows or (row in unknown and is_in_scope(self._catalog, row, scope))
            }
            if is_baseline:
                changed = {
                    baseline: tick
                    for row, tick in changed.items()
                    if (baseline := self._catalog.baseline_of(row)) is not None
                }
                if not changed:
                    continue
                scope = {**scope, "variant": BASELINE}
            yield Candidate(
                cause=known.cause,
                scope=scope,
                tick_by_row=changed,
                day=min(known.day_by_row.get(row, known.day) for row in changed),
                z=mean.z,
                size=sign * mean.size,
                threshold=least,
                break_=known,
                is_planned=True,
                is_part=not is_whole,
                evidence=rows,
                precision=mean.precision,
            )

    def _mean(
        self,
        rows: Mapping[int, Difference],
        tick_by_row: Mapping[int, int],
        *,
        is_one: bool,
        least_sure: int,
    ) -> Pooled | None:
        """Return how far the series of a scope moved; None where sessions are too few to tell.

        Args:
            rows: what each showed.
            tick_by_row: of the first session with the version.
            is_one: whether it is one series, or one baseline, that moved.
            least_sure: sessions since, if all moved so far that a few suffice.
        """
        afters = [part.after for part in rows.values()]
        is_early = max(afters) < LEAST_AFTER + is_one or sum(afters) < _LEAST_AFTER_TOTAL
        if is_early or min(part.before for part in rows.values()) <= _FEW:
            whole = self._evidence.of({row: tick_by_row[row] for row in rows}, is_whole=True)
            if max(afters) >= least_sure and is_sure([part.size for part in whole.values()]):
                return pooled(
                    [replace(part, degrees=FEW_DEGREES) for part in self._evidence.by_baseline(whole)]
                )
        return None if is_early else pooled(self._evidence.by_baseline(rows))

    def _is_shared(self, rows: Mapping[int, Difference], mean: Pooled) -> bool:
        """Return whether the other baselines of a scope moved, too, beside the one that shows most of it."""
        parts = self._evidence.by_baseline(rows)
        if len(parts) < 2:
            return True
        shown = [part.size * mean.size / (part.variance + 1e-6) for part in parts]
        del parts[shown.index(max(shown))]
        rest = pooled(parts)
        most = rest.size * math.copysign(1.0, mean.size) + 1.0 / math.sqrt(rest.precision)
        return most >= SHARE_OF_STEP * abs(mean.size)

    def _began_elsewhere(self, rows: Collection[int], tick_by_row: Mapping[int, int]) -> bool:
        """Return whether a step at an earlier or a later session explains these series clearly better."""
        ratios, evidence = self._ratios, self._evidence
        return begins_elsewhere(
            lambda at: pooled(evidence.by_baseline(evidence.of(at))).z,
            {row: ratios.ticks[row][-int(ratios.count[row]) :] for row in rows},
            {row: tick_by_row[row] for row in rows},
        )
