"""Verdicts as pages show them: by a glyph, words and a colour, never by the colour alone."""

from farm.core.runs.measurement import Verdict

_GLYPHS = {
    Verdict.FASTER: "▲",
    Verdict.FASTER_SIZE_OPEN: "△",
    Verdict.FASTER_WITHIN: "△",
    Verdict.SAME: "=",
    Verdict.SLOWER_WITHIN: "▽",
    Verdict.SLOWER_SIZE_OPEN: "▽",
    Verdict.SLOWER: "▼",
    Verdict.UNDECIDED: "?",
}
_CLASSES = {
    Verdict.FASTER: "faster",
    Verdict.FASTER_SIZE_OPEN: "faster",
    Verdict.FASTER_WITHIN: "faster",
    Verdict.SAME: "same",
    Verdict.SLOWER_WITHIN: "slower",
    Verdict.SLOWER_SIZE_OPEN: "slower",
    Verdict.SLOWER: "slower",
    Verdict.UNDECIDED: "undecided",
}


def interval_side(low: float | None, high: float | None) -> str:
    """Return on which side of 1 an interval is, where no margin is judged: a class of a verdict."""
    if low is None or high is None:
        return "undecided"
    return "faster" if low > 1 else "slower" if high < 1 else "undecided"


def verdict_glyph(verdict: Verdict) -> str:
    """Return the glyph of a verdict: filled where the difference is beyond the margin."""
    return _GLYPHS[verdict]


def verdict_class(verdict: Verdict) -> str:
    """Return the class whose colour a verdict has."""
    return _CLASSES[verdict]
