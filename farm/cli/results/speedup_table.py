"""The speedup table: comparisons by device, with intervals, verdicts and a legend."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from farm.cli.shell.formatting import EMPTY_CELL, change_text, device_kind, duration_or_nothing
from farm.core.base.units import ratio_text
from farm.core.matrices.matrix import value_text
from farm.core.runs.verdict import Verdict
from farm.wire.documents.matrices.matrices import SpeedupView

LEGEND = (
    "speedup = baseline time / candidate time: above 1 the candidate is faster.",
    "time = baseline → candidate, geometric means over the rounds that count.",
    "same = the interval is within the margin; undecided = it spans 1, or is missing.",
)
LEFT_OUT_LEGEND = "(n out) = n blocks left out: one side is not valid, or the block was run again."
AA_LEGEND = (
    "A/A: the baseline against its duplicate. If its verdict is faster or slower,",
    "     the other rows of the device cannot be trusted either.",
)

_HEADINGS = ("speedup", "95 % interval", "time", "difference", "rounds", "verdict")
_STYLE_BY_VERDICT = {Verdict.FASTER: "green", Verdict.SLOWER: "red", Verdict.UNDECIDED: "yellow"}
_GAP = "  "
#: From this number on, candidates with the same reason are counted instead of named.
_MAX_NAMES = 3
#: Labels of duplicates have it already.
_AA_SUFFIX = " (A/A)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _SpeedupRow:
    name: str
    cells: tuple[str, ...]
    style: str


def speedup_table(views: Sequence[SpeedupView], *, width: int) -> Text:
    """Return the table for a terminal of `width` columns; rows that do not fit take two lines."""
    in_order = sorted(views, key=lambda view: (*_group_key(view), view.cell_id))
    blocks = [_block(list(group), width) for _, group in groupby(in_order, key=_group_key)]
    legend = Text("\n".join(_legend(views)), style="dim")
    return Text("\n\n").join([*blocks, legend])


def _group_key(view: SpeedupView) -> tuple[str, str, str, int]:
    return view.device, view.model or "", view.harness, view.matrix_id


def _legend(views: Iterable[SpeedupView]) -> Iterator[str]:
    yield from LEGEND
    if any(view.excluded for view in views):
        yield LEFT_OUT_LEGEND
    if any(view.aa for view in views):
        yield from AA_LEGEND


def _block(views: Sequence[SpeedupView], width: int) -> Text:
    """Return the heading, rows and notes of one device and model."""
    baselines = {view.baseline for view in views}
    rows = [_row(view, name_baseline=len(baselines) > 1) for view in views]
    lines = [*_heading(views, baselines), *_layout_rows(rows, width), *map(Text, _notes(views))]
    return Text("\n").join(lines)


def _heading(views: Sequence[SpeedupView], baselines: set[str]) -> Iterator[Text]:
    view = views[0]
    kind = device_kind(view.device_model, view.soc, virtual=view.virtual)
    yield Text(f"{view.device}  ({kind})", style="bold")
    about = ", ".join(filter(None, [view.model, view.harness, f"matrix {view.matrix_id}"]))
    if len(baselines) == 1:
        about += f"; baseline {view.baseline}"
    yield Text(about)
    if settings := _shared_settings(views):
        yield Text(f"with {settings}")


def _shared_settings(views: Sequence[SpeedupView]) -> str:
    """Return the flags that are the same in all rows and therefore in no label."""
    shared = set.intersection(*(set(view.settings.items()) for view in views))
    return ", ".join(f"{name}={value_text(value)}" for name, value in sorted(shared))


def _row(view: SpeedupView, *, name_baseline: bool) -> _SpeedupRow:
    name = view.candidate.removesuffix(_AA_SUFFIX) + (_AA_SUFFIX if view.aa else "")
    if name_baseline:
        name += f" vs {view.baseline}"
    cells = (
        EMPTY_CELL if view.speedup is None else ratio_text(view.speedup),
        _interval(view.ci_low, view.ci_high),
        change_text(view.baseline_ns, view.candidate_ns),
        _difference(view.baseline_ns, view.candidate_ns),
        f"{view.rounds} ({view.excluded} out)" if view.excluded else str(view.rounds),
        str(view.verdict),
    )
    return _SpeedupRow(name=name, cells=cells, style=_STYLE_BY_VERDICT.get(view.verdict, ""))


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return EMPTY_CELL
    return f"{_ratio_text(low)} to {_ratio_text(high)}"


def _ratio_text(ratio: float) -> str:
    return ratio_text(ratio).removesuffix("x")


def _difference(baseline_ns: float | None, candidate_ns: float | None) -> str:
    """Return the extra time of the candidate; negative if it is faster."""
    if baseline_ns is None or candidate_ns is None:
        return EMPTY_CELL
    text = duration_or_nothing(candidate_ns - baseline_ns)
    return text if text.startswith("-") else f"+{text}"


def _layout_rows(rows: Sequence[_SpeedupRow], width: int) -> Iterator[Text]:
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *(row.cells for row in rows), strict=True)]
    name_width = max(len("candidate"), *(len(row.name) for row in rows))
    numbers_width = sum(widths) + len(_GAP) * len(widths)
    if name_width + numbers_width <= width:
        yield Text(f"{'candidate':{name_width}}" + _align(_HEADINGS, widths), style="bold")
        for row in rows:
            yield Text(f"{row.name:{name_width}}") + Text(_align(row.cells, widths), style=row.style)
    else:
        yield Text("candidate\n" + _align(_HEADINGS, widths), style="bold")
        for row in rows:
            yield Text(f"{row.name}\n") + Text(_align(row.cells, widths), style=row.style)


def _align(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Align numbers to the right and the verdict to the left."""
    padded = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
    return _GAP + _GAP.join([*padded[:-1], cells[-1]])


def _shorten_names(candidates: Sequence[str]) -> str:
    """Return the names, or their count if there are many."""
    return ", ".join(candidates) if len(candidates) < _MAX_NAMES else f"{len(candidates)} candidates"


def _notes(views: Sequence[SpeedupView]) -> Iterator[str]:
    candidates_by_reason: dict[str, list[str]] = {}
    for view in views:
        if view.verdict is Verdict.UNDECIDED and view.reason:
            candidates_by_reason.setdefault(view.reason, []).append(view.candidate)
    for reason, candidates in candidates_by_reason.items():
        yield f"note: {_shorten_names(candidates)}: {reason}"
    effects = [view.detectable for view in views if view.detectable is not None]
    if effects:
        low, high = f"{min(effects):.1%}", f"{max(effects):.1%}"
        yield f"smallest difference these rounds could show: {low if low == high else f'{low} to {high}'}"
