"""Verdicts on a candidate; a module of its own, so that readers do not load scipy."""

from enum import StrEnum

#: How far from 1 a speedup is still the same, as a fraction.
DEFAULT_MARGIN = 0.02
#: Fewer rounds give a ratio but no interval.
MIN_ROUNDS = 5


class Verdict(StrEnum):
    """The verdict on a candidate."""

    #: The whole interval is above 1, and not within the equivalence margin.
    FASTER = "faster"
    SLOWER = "slower"
    #: The whole interval lies within the equivalence margin.
    SAME = "same"
    #: The interval spans 1 and reaches beyond the margin, or there is none.
    UNDECIDED = "undecided"
