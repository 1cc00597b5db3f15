"""Verdicts and states of cells as pages show them: by glyph, words and colour, never by the colour alone."""

from functools import cache

from markupsafe import Markup

from farm.core.runs.measurement import CellState, Verdict

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
_STATE_GLYPHS = {
    CellState.VALID: "●",
    CellState.REFUSED: "◐",
    CellState.FAILED: "✕",
    CellState.UNSUPPORTED: "\N{EN DASH}",
    CellState.NOT_RUN: "○",
}


def state_class(state: str) -> str:
    """Return the class whose colour a state of a cell has."""
    return state.replace(" ", "-")


# Kept: a page of a matrix has hundreds of cells in one of five states.
@cache
def state_mark(state: str) -> Markup:
    """Return the glyph of a state of a cell, with its word for who does not see it."""
    mark = Markup(
        '<span class="mark {}"><span aria-hidden="true">{}</span><span class="hidden">{}</span></span>'
    )
    return mark.format(state_class(state), _STATE_GLYPHS[CellState(state)], state)


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
