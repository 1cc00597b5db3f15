"""The interval of a mean of log ratios: Student's t, moderated by the past, widened by the clock's step."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from farm.core.results.statistics.past_variance import VariancePrior
from farm.core.runs.stats import t_probability, t_quantile

CONFIDENCE = 0.95
#: The chance to find an effect of the size of the minimum detectable one.
POWER = 0.8
#: The degrees of freedom from which on Student's t is the normal distribution.
_MANY_DEGREES = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInterval:
    """On the log scale, where swapping the sides only changes the sign."""

    mean: float
    low: float
    high: float
    #: The chance of a mean at least so far from 0 where there is no difference.
    p_value: float
    #: The smallest true difference that so many rounds would probably show.
    detectable: float
    #: The standard error of the mean, moderated and widened, and its degrees of freedom.
    standard_error: float
    degrees: float

    @property
    def half_width(self) -> float:
        """Return half of its width."""
        return (self.high - self.low) / 2


def step_variance(value_ns: float, step_ns: float) -> float:
    """Return the variance of the logarithm of a value that was read in steps.

    A step hides a uniform error, of variance step²/12 (JCGM 100:2008, GUM, F.2.2.1).
    """
    return (step_ns / value_ns) ** 2 / 12


def bounded_exp(log: float) -> float:
    """Return `math.exp` of a logarithm, bounded so that intervals of absurd width do not overflow."""
    return math.exp(max(-700.0, min(log, 700.0)))


def mean_and_variance(logs: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the sample variance of two values or more, of exactly rounded sums."""
    mean = math.fsum(logs) / len(logs)
    return mean, math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1)


def log_interval(
    logs: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    hidden_variance: float = 0.0,
    prior: VariancePrior | None = None,
) -> LogInterval:
    """Return the interval of the mean, and the minimum detectable effect at 80 % power.

    The latter is (t[(1 + confidence) / 2] + t[0.8]) x standard error: Bloom, "Minimum Detectable Effects",
    Evaluation Review 19(5), 1995; with the variance that the past shows, where it does: that of the rounds
    themselves is small where they happened to agree. Sums are exactly rounded, so the order of the rounds
    cannot show.

    Args:
        logs: of the ratio of each round, at least two.
        confidence: of the interval.
        hidden_variance: of the mean, by what the rounds cannot show because they share it: the clock's step.
            Degrees of freedom are Welch and Satterthwaite's then.
        prior: what earlier rounds of the same pair say of their variance.
    """
    mean, variance = mean_and_variance(logs)
    return interval_of_mean(
        mean, variance, len(logs), confidence=confidence, hidden_variance=hidden_variance, prior=prior
    )


def interval_of_mean(
    mean: float,
    variance: float,
    count: int,
    *,
    confidence: float = CONFIDENCE,
    hidden_variance: float = 0.0,
    prior: VariancePrior | None = None,
) -> LogInterval:
    """Return `log_interval` of `count` logarithms, by their mean and sample variance."""
    degrees = float(count - 1)
    planned = variance if prior is None else prior.variance
    if prior is not None:
        # Smyth, "Linear models and empirical Bayes methods", 2004, equation 1.
        variance = (prior.degrees * prior.variance + degrees * variance) / (prior.degrees + degrees)
        degrees += prior.degrees
    error, degrees = _error(variance / count, degrees, hidden_variance)
    half = t_quantile((1 + confidence) / 2, degrees) * error
    planned_error, planned_degrees = _error(planned / count, count - 1.0, hidden_variance)
    factor = t_quantile((1 + confidence) / 2, planned_degrees) + t_quantile(POWER, planned_degrees)
    return LogInterval(
        mean=mean,
        low=mean - half,
        high=mean + half,
        p_value=_p_value(mean, error, degrees),
        detectable=factor * planned_error,
        standard_error=error,
        degrees=degrees,
    )


def _error(sampled: float, degrees: float, hidden: float) -> tuple[float, float]:
    """Return the standard error of both variances of a mean, and its degrees of freedom."""
    if hidden == 0.0:
        return math.sqrt(sampled), degrees
    share = sampled / (sampled + hidden)
    return math.sqrt(sampled + hidden), min(degrees / share**2, _MANY_DEGREES) if share else _MANY_DEGREES


def _p_value(mean: float, error: float, degrees: float) -> float:
    if error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return 2 * t_probability(-abs(mean) / error, degrees)
