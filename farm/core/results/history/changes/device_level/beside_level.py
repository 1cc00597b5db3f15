"""Ratios beside the level of their device: without the noise of their baseline, and without heat."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from farm.core.results.history.changes.breaks import Catalog
from farm.core.results.history.changes.device_level.levels import SESSIONS, DeviceLevels
from farm.core.results.history.changes.differences import Difference, contrasts
from farm.core.results.history.changes.noise import CLIP, MAD_TO_SIGMA, Bools, Floats, Ints, row_medians
from farm.core.results.history.changes.ratios import RatioHistory

#: That a ratio does not follow the noise of its baseline counts as so many sessions.
_PRIOR_SESSIONS = 10.0
#: Further series of a device that say what its level is.
_LEAST_OTHERS = 2
#: A ratio moves by this share of what it does without the noise of its baseline.
_LEAST_SHARE = 0.5
#: Usual difference, over series, of how much they and their baseline feel the level of their device.
_HEAT_IN_RATIO = 0.3


class BesideLevel:
    """Explains ratios by the absolute times of their device."""

    def __init__(self, catalog: Catalog, ratios: RatioHistory, levels: DeviceLevels) -> None:
        self._catalog = catalog
        self._ratios = ratios
        self._levels = levels

    def without_baseline_noise(self, rows: Sequence[int]) -> RatioHistory:
        """Return the ratios of some series with their baseline's noise taken out, as a row for each.

        How far the baseline is from the other series of its device is a control variate: it is taken out by
        as much as the ratio has followed it from session to session (least squares, 0 to 1). A change of the
        series stays; one of its baseline, or of most other series, may seem to be one of the series.
        """
        own = np.array(rows)
        ratios = self._ratios.reference(own)
        noise = np.array([self._baseline_beside_others(row) for row in rows])
        noise = np.where(np.isnan(ratios), np.nan, noise)
        noise -= row_medians(noise)[0][:, None]
        steps, noise_steps = _steps(ratios), _steps(noise)
        is_known = ~np.isnan(steps + noise_steps)
        squares = np.where(is_known, noise_steps**2, 0.0).sum(axis=1)
        products = np.where(is_known, steps * noise_steps, 0.0).sum(axis=1)
        moderated = squares * (1.0 + _PRIOR_SESSIONS / np.maximum(is_known.sum(axis=1), 1))
        share = np.clip(-products / np.maximum(moderated, 1e-12), 0.0, 1.0)
        return self._ratios.with_added(own, share[:, None] * np.nan_to_num(noise))

    def more_precise(
        self, evidence: Mapping[int, Difference], tick_by_row: Mapping[int, int]
    ) -> dict[int, Difference]:
        """Return evidence of series without the noise of their baselines, where it is more precise.

        Args:
            evidence: that of their ratios, with which the other has to agree.
            tick_by_row: first session of the new level, by series.
        """
        steady = self.without_baseline_noise(list(evidence))
        found = contrasts(steady, {place: tick_by_row[row] for place, row in enumerate(evidence)})
        return {
            row: part if part.variance < own.variance and is_in_ratio(own.size, part.size) else own
            for (row, own), part in zip(evidence.items(), found.values(), strict=True)
        }

    def _baseline_beside_others(self, row: int) -> Floats:
        """Return how far the baseline of a series is from the others of its device, by session of the series.

        NaN where too few others say what the level of the device is.
        """
        catalog, levels, ticks = self._catalog, self._levels, self._ratios.ticks[row]
        baseline, device = catalog.baseline_of(row), catalog.series[row].device_row
        others = [other for other in catalog.rows_by_device[device] if other not in (row, baseline)]
        if baseline is None or len(others) < _LEAST_OTHERS:
            return np.full(len(ticks), np.nan)
        place, is_measured = self._sessions(device, ticks)
        apart = levels.times[baseline] - levels.block(np.array(others))
        return np.where(is_measured, apart[place], np.nan)

    def _sessions(self, device: int, ticks: Ints) -> tuple[Ints, Bools]:
        """Return which sessions of a device these ticks are, and whether they are any."""
        sessions = self._levels.ticks[device]
        place = np.minimum(np.searchsorted(sessions, ticks), SESSIONS - 1)
        return place, sessions[place] == ticks

    def share_of_score(
        self, history: RatioHistory, at: int, rows: Sequence[int], length: int, *, is_drift: bool
    ) -> float:
        """Return which share of a score remains where the ratio follows the level of its device.

        Series that feel the heat of their device more or less than their baseline have ratios that move with
        its level.

        Args:
            history: of series, or of groups.
            at: row of the history.
            rows: the series that it stands for.
            length: sessions since the change began.
            is_drift: whether it is a drift, and not a step.
        """
        if len({self._catalog.series[row].device_row for row in rows}) == 1:
            parts = [self._sizes(history, at, rows, length, is_drift=is_drift)]
        else:
            parts = [self._sizes(self._ratios, row, [row], length, is_drift=is_drift) for row in rows]
        alone, beside, precision = (float(sum(values)) for values in zip(*parts, strict=True))
        share = min(max(beside / alone, 0.0), 1.0) if alone else 1.0
        return share * precision / len(parts)

    def _sizes(
        self, history: RatioHistory, at: int, rows: Sequence[int], length: int, *, is_drift: bool
    ) -> tuple[float, float, float]:
        """Return the size of a change by least squares alone, and beside what the level explains.

        Third is how precise the one beside the level is, as a share: the less, the more alike both are.
        """
        device = self._catalog.series[rows[0]].device_row
        values = history.reference(np.array([at]))[0]
        place, is_measured = self._sessions(device, history.ticks[at])
        level = self._level_of_others(rows, device, int(history.ticks[at, -length]))[place]
        is_known = ~np.isnan(values) & is_measured & ~np.isnan(level)
        age = np.arange(len(values))[::-1]
        change = np.maximum(1.0 - age / length, 0.0) if is_drift else np.where(age < length, 1.0, 0.0)
        design = np.stack([np.ones(len(age)), change, level])[:, is_known]
        products, observed = design @ design.T, design @ values[is_known]
        inverse = np.linalg.pinv(products[:2, :2])
        products[2, 2] += (float(history.scales.sigma[at]) / _HEAT_IN_RATIO) ** 2
        beside = np.linalg.pinv(products)
        precision = min(float(inverse[1, 1] / max(beside[1, 1], 1e-12)), 1.0)
        return (
            float((inverse @ observed[:2])[1]),
            float((beside @ observed)[1]),
            math.sqrt(max(precision, 0.0)),
        )

    def _level_of_others(self, rows: Sequence[int], device: int, tick: int) -> Floats:
        """Return the level of a device by the series that a change of these at a session does not move.

        What was measured with them on one side of it alone does not know its own level without the change.
        """
        catalog, levels = self._catalog, self._levels
        baselines = {catalog.baseline_of(row) for row in rows}
        others = [r for r in catalog.rows_by_device[device] if r not in rows]
        unmoved = [r for r in others if r not in baselines] or (others if len(baselines) > 1 else [])
        if unmoved:
            unmoved = levels.measured_with(np.array(rows), np.array(unmoved), device, tick).tolist()
        return levels.block(np.array(unmoved)) if unmoved else np.zeros(SESSIONS)


def is_in_ratio(own: float, steady: float) -> bool:
    """Return whether a ratio itself moved at least by half of what it did without the noise of its baseline.

    Where the baseline or the other series moved, it did not.
    """
    return own * math.copysign(1.0, steady) >= _LEAST_SHARE * abs(steady)


def _steps(values: Floats) -> Floats:
    """Return how far successive values of each row are apart, at most three standard deviations."""
    apart = np.diff(values, axis=1)
    reach = CLIP * MAD_TO_SIGMA * row_medians(np.abs(apart))[0][:, None]
    return np.clip(apart, -reach, reach)
