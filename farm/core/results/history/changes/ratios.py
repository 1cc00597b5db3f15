"""Recent sessions of many series of one kind of value, their noise, and a sequential scan for changes."""

import math
from typing import NamedTuple

import numpy as np

from farm.core.results.history.changes.noise import (
    CLIP,
    LEAST_SIGMA,
    MAD_TO_SIGMA,
    MOST_CORRELATION,
    PRIOR_DEGREES,
    Bools,
    Floats,
    Ints,
    Scales,
    deviations,
    lagged,
    normal_scores,
    row_medians,
    scales,
    variance_of_mean,
    winsorized_means,
)

#: Sessions that are kept of a series.
WINDOW = 160
#: Numbers of latest sessions that are compared with those before. Three of them are too often outliers.
_LAGS = np.array([4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 60])
#: The shortest of them are compared by the scale of the sessions before, where these are fewer than so many.
_SHORT_LAGS = 2
_LONG_REFERENCE = 30
#: Lengths of drifts that are sought.
_RAMPS = np.array([15, 20, 30, 45, 60, 90])
#: A scan compares with at least so many sessions.
LEAST_REFERENCE = 8
#: Noise is measured from the level of so many sessions before.
_NEIGHBOURS = 12
#: So many of the latest sessions say nothing of the noise, where there are enough others.
_LATEST = 8
_ENOUGH = 10
#: Sessions before the noise of a series takes part in that of all.
_POOLED_FROM = 6
_UNKNOWN_SIGMA, _MOST_LOG = 0.03, 700.0
#: Correlation about the level of all sessions that exceeds the one about the local level by so much lasts.
_LASTING = 0.15


class Scan(NamedTuple):
    """The strongest step and the strongest drift of each row: standard normal scores, and sessions since."""

    step: Floats
    step_length: Ints
    drift: Floats
    drift_length: Ints

    @property
    def strongest(self) -> Floats:
        """Return the larger score of each row, without its sign."""
        scores: Floats = np.maximum(np.abs(self.step), np.abs(self.drift))
        return scores


class RatioHistory:
    """The log ratios of series, as slowdowns: + is slower than the baseline.

    Rows are series. The reference of a row are the sessions since its last change.
    """

    def __init__(
        self,
        *,
        usual_sigma: float = _UNKNOWN_SIGMA,
        sigma_by_error: float | None = None,
        clip: float = CLIP,
        usual_correlation: float = 0.0,
    ) -> None:
        """Begin without rows.

        Args:
            usual_sigma: standard deviation of a session, in log units, before any is known.
            sigma_by_error: the same as a multiple of the standard error of a point; None for unknown.
            clip: standard deviations that a session counts as at most in a scan.
            usual_correlation: of successive sessions, before any is known.
        """
        self.values: Floats = np.full((0, WINDOW), np.nan)
        self.errors: Floats = np.zeros((0, WINDOW))
        self.ticks: Ints = np.zeros((0, WINDOW), dtype=np.int64)
        self.days: Ints = np.zeros((0, WINDOW), dtype=np.int64)
        self.residuals: Floats = np.full((0, WINDOW), np.nan)
        self.count: Ints = np.zeros(0, dtype=np.int64)
        #: First session of the newest version of a series or of its baseline.
        self._version_ticks: Ints = np.zeros(0, dtype=np.int64)
        self.scales = Scales(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))
        self._center: Floats = np.zeros(0)
        self._pooled_sigma = usual_sigma
        self._sigma_by_error = sigma_by_error
        self._clip = clip
        self.usual_correlation = usual_correlation

    def grow(self, rows: int) -> None:
        """Have room for so many rows."""
        more = rows - len(self.values)
        if more <= 0:
            return
        more = max(more, len(self.values) // 2)
        self.values = np.vstack([self.values, np.full((more, WINDOW), np.nan)])
        self.errors = np.vstack([self.errors, np.zeros((more, WINDOW))])
        self.ticks = np.vstack([self.ticks, np.zeros((more, WINDOW), dtype=np.int64)])
        self.days = np.vstack([self.days, np.zeros((more, WINDOW), dtype=np.int64)])
        self.residuals = np.vstack([self.residuals, np.full((more, WINDOW), np.nan)])
        self.count = np.concatenate([self.count, np.zeros(more, dtype=np.int64)])
        self._version_ticks = np.concatenate([self._version_ticks, np.zeros(more, dtype=np.int64)])
        self._center = np.concatenate([self._center, np.zeros(more)])
        known = self.scales
        self.scales = Scales(
            np.concatenate([known.sigma, np.full(more, self._pooled_sigma)]),
            np.concatenate([known.degrees, np.ones(more)]),
            np.concatenate([known.excess, np.ones(more)]),
            np.concatenate([known.correlation, np.zeros(more)]),
        )

    def begin_version(self, rows: Ints, tick: int) -> None:
        """Have a new version in these rows, which may be another level, from a session on."""
        self._version_ticks[rows] = tick

    def push(self, rows: Ints, values: Floats, errors: Floats, *, tick: int, day: int) -> None:
        """Add one session to each of these rows."""
        count = self.count[rows]
        residual = (values - self._center[rows]) / np.sqrt(1.0 + 1.0 / np.clip(count, 1, _NEIGHBOURS))
        residual = np.where(count >= 3, residual, np.nan)
        for store, new in ((self.values, values), (self.errors, errors), (self.residuals, residual)):
            kept = store[rows, 1:]
            store[rows, :-1] = kept
            store[rows, -1] = new
        for numbers, number in ((self.ticks, tick), (self.days, day)):
            kept_numbers = numbers[rows, 1:]
            numbers[rows, :-1] = kept_numbers
            numbers[rows, -1] = number
        self.count[rows] = np.minimum(count + 1, WINDOW)
        self._estimate(rows)

    def _estimate(self, rows: Ints) -> None:
        residuals = self._noise(rows)
        # A step that has just begun is no noise, either.
        residuals[self._is_enough(rows), -_LATEST:] = np.nan
        found = scales(residuals, self._prior(rows), self.usual_correlation)
        known = self.scales
        known.sigma[rows] = found.sigma
        known.degrees[rows] = found.degrees
        known.excess[rows] = found.excess
        known.correlation[rows] = found.correlation
        self._center[rows] = self._local_level(rows)

    def _is_enough(self, rows: Ints) -> Bools:
        known: Bools = (~np.isnan(self.residuals[rows, :-_LATEST])).sum(axis=1) >= _ENOUGH
        return known

    def _noise(self, rows: Ints) -> Floats:
        """Return the residuals of each row; with few, those of a new version are from its own sessions."""
        residuals = self.residuals[rows]
        is_few = ~self._is_enough(rows)
        few = rows[is_few]
        since = np.where(self.ticks[few] >= self._version_ticks[few][:, None], self.reference(few), np.nan)
        own = deviations(since)
        residuals[is_few] = np.where(np.isnan(since), residuals[is_few], own)
        return residuals

    def _local_level(self, rows: Ints) -> Floats:
        """Return the level of the latest sessions. Noise is measured from it, so no drift is noise."""
        return winsorized_means(self.reference(rows)[:, -_NEIGHBOURS:], self.scales.sigma[rows])

    def _prior(self, rows: Ints) -> Floats:
        """Return what other series say of the noise of these: by their standard errors, if known."""
        pooled = np.full(len(rows), self._pooled_sigma)
        if self._sigma_by_error is None:
            return pooled
        error = row_medians(np.where(self.errors[rows] > 0, self.errors[rows], np.nan))[0]
        return np.where(np.isnan(error), pooled, np.maximum(pooled / 2, self._sigma_by_error * error))

    def believed_errors(self, rows: Ints) -> Floats:
        """Return the standard errors of sessions; less where most series scatter by less than theirs say."""
        return np.nan_to_num(self.errors[rows]) * min(self._sigma_by_error or 1.0, 1.0)

    def pool(self) -> None:
        """Learn from all rows what the noise of a row with few sessions may be. Once a day."""
        middle, counts = row_medians(np.abs(self._noise(np.arange(len(self.count)))))
        known = counts >= _POOLED_FROM
        if not known.any():
            return
        sigma = np.maximum(middle[known] * MAD_TO_SIGMA, LEAST_SIGMA)
        self._pooled_sigma = float(np.median(sigma))
        error = row_medians(np.where(self.errors[known] > 0, self.errors[known], np.nan))[0]
        if np.isfinite(error).sum() >= 3:
            self._sigma_by_error = float(np.nanmedian(sigma / error))
        long = self.count >= 2 * LEAST_REFERENCE
        if long.any():
            self.usual_correlation = self._usual_correlation(np.flatnonzero(long))

    def _usual_correlation(self, rows: Ints) -> float:
        """Return the correlation of most rows: about their local levels, or where it lasts longer, about all.

        About the local level, noise that lasts for weeks seems less correlated than it is. About the level of
        all sessions, a series that changed seems correlated that is not: so the difference has to be large.
        """
        sigma = self.scales.sigma[rows][:, None]
        reference = self.reference(rows)
        center, counts = row_medians(reference)
        near = float(np.median(lagged(self.residuals[rows] / sigma)))
        whole = lagged((reference - center[:, None]) / sigma)
        # Marriott and Pope, "Bias in the estimation of autocorrelations", Biometrika 41, 1954.
        lasting = float(np.median(whole + (1.0 + 4.0 * whole) / np.maximum(counts, 1)))
        found = lasting if lasting - near > _LASTING else near
        return float(np.clip(found, 0.0, MOST_CORRELATION))

    def reference(self, rows: Ints) -> Floats:
        """Return the values since the last change of each row, NaN before it."""
        ages = np.arange(WINDOW - 1, -1, -1)
        return np.where(ages[None, :] < self.count[rows][:, None], self.values[rows], np.nan)

    def restart(self, rows: Ints, ticks: Ints) -> None:
        """Begin a new level of these rows at these sessions; what came before is no reference any more."""
        is_new = self.ticks[rows] >= ticks[:, None]
        count = np.minimum(is_new.sum(axis=1), self.count[rows])
        # Residuals against the previous level are no noise.
        self.residuals[rows] = np.where(is_new, np.nan, self.residuals[rows])
        self.count[rows] = count
        self._center[rows] = self._local_level(rows)

    def with_added(self, rows: Ints, added: Floats) -> "RatioHistory":
        """Return a history of these rows with something added to each session, and the noise that it has.

        Args:
            rows: of the series, which become rows 0, 1 and so on.
            added: by row and session, newest last.
        """
        history = RatioHistory(
            usual_sigma=self._pooled_sigma,
            sigma_by_error=self._sigma_by_error,
            clip=self._clip,
            usual_correlation=self.usual_correlation,
        )
        history.grow(len(rows))
        own = slice(len(rows))
        before = np.arange(WINDOW)
        sums = np.cumsum(np.pad(added, ((0, 0), (1, 0))), axis=1)
        neighbours = np.minimum(before, _NEIGHBOURS)
        level = (sums[:, before] - sums[:, before - neighbours]) / np.maximum(neighbours, 1)
        history.values[own] = self.values[rows] + added
        history.residuals[own] = self.residuals[rows] + (added - level) / math.sqrt(1.0 + 1.0 / _NEIGHBOURS)
        history.errors[own] = self.errors[rows]
        history.ticks[own], history.days[own] = self.ticks[rows], self.days[rows]
        history.count[own], history._version_ticks[own] = self.count[rows], self._version_ticks[rows]
        history._estimate(np.arange(len(rows)))
        return history

    def scan(self, rows: Ints) -> Scan:
        """Compare the latest sessions of each row with those before, as steps and drifts of all lengths.

        A generalized likelihood ratio of clipped scores. Each length has at least four sessions, so a few
        that are broken do not suffice.
        """
        t = self._scan_values(rows)[0]
        scores = normal_scores(t, self.scales.degrees[rows][:, None])
        steps, drifts = scores[:, : len(_LAGS)], scores[:, len(_LAGS) :]
        short = self._short_steps(rows)
        steps = np.where(np.abs(short) > np.abs(steps), short, steps)
        ordinal = np.arange(len(rows))
        step, drift = np.abs(steps).argmax(axis=1), np.abs(drifts).argmax(axis=1)
        return Scan(steps[ordinal, step], _LAGS[step], drifts[ordinal, drift], _RAMPS[drift])

    def _short_steps(self, rows: Ints) -> Floats:
        """Return the scores of steps of each row by the scale of the sessions before; 0 after long histories.

        After few sessions, the usual scale is that of the sessions since the step, too. Student's t of those
        before has as few degrees of freedom as they are. All sessions since move by half of the step.
        """
        reference, count = self.reference(rows), self.count[rows]
        scores = np.zeros((len(rows), len(_LAGS)))
        within = np.clip(self.believed_errors(rows).max(axis=1), 0.0, _MOST_LOG) ** 2
        for place, after in enumerate(_LAGS[:_SHORT_LAGS]):
            before, since = reference[:, :-after], reference[:, -after:]
            known = count - after
            is_able = (known >= LEAST_REFERENCE) & (known < _LONG_REFERENCE)
            center = np.nan_to_num(np.where(np.isnan(before), 0.0, before).sum(axis=1) / np.maximum(known, 1))
            apart = np.where(np.isnan(before), 0.0, before - center[:, None])
            own = (apart**2).sum(axis=1)
            degrees = PRIOR_DEGREES + np.maximum(known - 1, 0)
            scale = (PRIOR_DEGREES * self._prior(rows) ** 2 + own) / degrees
            scale = np.maximum(scale, within)
            correlation = self.scales.correlation[rows]
            spread = np.sqrt(
                scale
                * (
                    variance_of_mean(np.full(len(rows), after), correlation)
                    + variance_of_mean(known, correlation)
                )
            )
            size = row_medians(since)[0] - center
            is_able &= (np.sign(size)[:, None] * (since - center[:, None]) >= np.abs(size)[:, None] / 2).all(
                axis=1
            )
            t = np.where(is_able, size / np.maximum(spread, LEAST_SIGMA / 10), 0.0)
            scores[:, place] = normal_scores(t, degrees)
        return scores

    def weighted_values(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return the scores of all steps and drifts of each row, and one over the error of their sizes."""
        t, errors = self._scan_values(rows)
        return t, np.where(t == 0.0, 0.0, 1.0 / errors)

    def _scan_values(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return values of Student's t of all steps and drifts, 0 where sessions are too few, and errors."""
        reference = self.reference(rows)
        n = self.count[rows].astype(np.float64)[:, None]
        center = row_medians(reference)[0]
        sigma = self.scales.sigma[rows][:, None]
        unit = np.maximum(sigma, self.believed_errors(rows))
        z = np.clip((reference - center[:, None]) / unit, -self._clip, self._clip)
        newest_first = np.where(np.isnan(z), 0.0, z)[:, ::-1]
        sums = np.cumsum(newest_first, axis=1)
        correlation = self.scales.correlation[rows][:, None]
        excess = self.scales.excess[rows][:, None]
        lags = _LAGS[None, :]
        rest = np.maximum(n - lags, 1.0)
        after = sums[:, _LAGS - 1]
        shift = after / lags - (sums[:, -1:] - after) / rest
        spread = excess * np.sqrt(
            variance_of_mean(np.broadcast_to(lags, shift.shape), correlation)
            + variance_of_mean(rest, correlation)
        )
        steps = np.where(n - lags >= np.maximum(LEAST_REFERENCE, lags), shift / spread, 0.0)
        slopes, slope_errors = self._ramps(newest_first, n, sums[:, -1:], correlation)
        drifts = slopes / (slope_errors * excess)
        errors = np.concatenate([spread, slope_errors * excess], axis=1) * sigma
        return np.concatenate([steps, drifts], axis=1), errors

    def first_session(self, row: int, length: int) -> int:
        """Return the number of latest sessions with which a step of about that length fits best."""
        reference = self.reference(np.array([row]))[0]
        values = reference[~np.isnan(reference)]
        reach = 4 * self.scales.sigma[row]
        ends = values[:-length], values[-length:]
        low, high = sorted((float(np.median(ends[0])), float(np.median(ends[1]))))
        values = np.clip(values, low - reach, high + reach)
        lengths = np.arange(max(length // 2, 2), min(2 * length, len(values) - 3) + 1)
        sums = np.cumsum(values[::-1])
        after = sums[lengths - 1] / lengths
        before = (sums[-1] - sums[lengths - 1]) / (len(values) - lengths)
        gains = lengths * (len(values) - lengths) * (after - before) ** 2
        return int(lengths[gains.argmax()])

    def _ramps(
        self, newest_first: Floats, n: Floats, total: Floats, correlation: Floats
    ) -> tuple[Floats, Floats]:
        """Return how far each row drifted over each length, 0 where that is not known, and the errors."""
        ages = np.arange(WINDOW)
        ramps = np.maximum(1.0 - ages[None, :] / _RAMPS[:, None], 0.0)
        weight, squares = ramps.sum(axis=1)[None, :], (ramps**2).sum(axis=1)[None, :]
        dot = newest_first @ ramps.T - weight / np.maximum(n, 1.0) * total
        norm = np.maximum(squares - weight**2 / np.maximum(n, 1.0), 1e-9)
        inflation = np.sqrt((1.0 + correlation) / (1.0 - correlation))
        is_possible = n - _RAMPS[None, :] >= LEAST_REFERENCE
        return np.where(is_possible, dot / norm, 0.0), inflation / np.sqrt(norm)
