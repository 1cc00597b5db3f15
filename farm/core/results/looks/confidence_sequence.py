"""Confidence sequence: intervals that hold at all numbers of rounds at once, for looks that were not planned.

Student's t under a mixture of effects: where the effect in units of the deviation is normal around 0 under
the alternative, the Bayes factor of the t statistics is a test martingale, whatever the deviation (Lai, "On
Confidence Sequences", Annals of Statistics 4(2), 1976; Grünwald, de Heide and Koolen, "Safe Testing", JRSS B
86(5), 2024; Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
variance", Sequential Analysis 44(1), 2025). By Ville's inequality it exceeds 1/alpha at any time with a
probability of at most alpha.
"""

import math

from farm.core.runs.stats import t_probability

#: Variance of effects, in units of the pairs' own variance. The sequence holds with any; this one is
#: narrow for effects of one to three deviations, which 5 to 20 rounds can find.
_EFFECT_VARIANCE = 4.0
#: The error of all looks that were not planned. Half of 5 %: mostly a planned look at 95 % is beside them,
#: such as the first of several matrices. All together they are wrong in 5.1 to 5.3 %.
ANYTIME_ERROR = 0.025


def anytime_confidence(rounds: int) -> float:
    """Return the confidence that makes Student's t interval over rounds part of a confidence sequence.

    The mixture is `sqrt(1/r) * ((1 + t²/v) / (1 + t²/(v r)))^(n/2)`, with n rounds, v = n - 1 and
    r = 1 + n x the variance of effects (Rouder et al., Psychonomic Bulletin & Review 16(2), 2009, for one
    variance). Solved for the t at which it is 1/alpha, where alpha is
    `ANYTIME_ERROR`.

    Args:
        rounds: usable ones.

    Returns:
        a confidence below 1; 1 where there are too few rounds for any interval.
    """
    if rounds < 2:
        return 1.0
    spread = 1 + rounds * _EFFECT_VARIANCE
    bound = (math.sqrt(spread) / ANYTIME_ERROR) ** (2 / rounds)
    if bound >= spread:
        return 1.0
    degrees = rounds - 1
    t = math.sqrt(degrees * (bound - 1) / (1 - bound / spread))
    return 1 - 2 * t_probability(-t, degrees)
