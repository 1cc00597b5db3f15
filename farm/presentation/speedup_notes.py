"""Notes below a table of speedups: what is left out, what chance would name, what A/A pairs say."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from textwrap import wrap
from typing import Protocol, assert_never

from farm.core.base.units import ratio_text
from farm.core.models.variant import SlowPath
from farm.core.results.looks.basis import IntervalKind
from farm.core.results.pairing import SUPERSEDED_BLOCK
from farm.core.results.statistics.families import FALSE_DISCOVERIES, discoveries, named_by_chance
from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.runs.measurement import Verdict
from farm.presentation.labels import device_name
from farm.presentation.text import plural
from farm.wire.documents.results.speedups import SpeedupView

LEGEND = (
    "speedup = baseline time / candidate time: above 1 the candidate is faster.",
    "time = baseline → candidate, geometric means over the rounds that count;",
    "       tables of times show medians over rounds, which differ from them.",
    "faster, slower = the whole interval is beyond the margin; within = between the",
    "       margin and 1; size open = on both sides of the margin; same = holds 1 and",
    "       is within the margin; undecided = holds 1 and leaves it, or is missing.",
)
#: Rows that stand beside all others have it.
DISCOVERY = "*"
#: From this number on, candidates with the same note are counted instead of named.
_MAX_NAMES = 3
#: The most different values that are each listed with their rows.
_MAX_VALUES = 3


class ComparedWork(Protocol):
    """What both sides of a comparison run: on one device, or on the devices of a group."""

    @property
    def candidate(self) -> str: ...
    @property
    def baseline(self) -> str: ...
    @property
    def virtual(self) -> bool: ...
    @property
    def harness(self) -> str: ...
    @property
    def baseline_harness(self) -> str | None: ...
    @property
    def unoptimized(self) -> bool: ...
    @property
    def baseline_unoptimized(self) -> bool: ...
    @property
    def slow_path(self) -> SlowPath | None: ...
    @property
    def baseline_slow_path(self) -> SlowPath | None: ...
    @property
    def clock_covers(self) -> str | None: ...
    @property
    def baseline_clock_covers(self) -> str | None: ...
    @property
    def clocks_differ(self) -> bool: ...
    @property
    def tokens(self) -> str | None: ...
    @property
    def baseline_tokens(self) -> str | None: ...
    @property
    def tokens_differ(self) -> bool: ...


def notes(views: Sequence[SpeedupView], *, width: int) -> Iterator[str]:
    """Yield the notes on the rows of one device and model, wrapped."""
    kinds = (_reasons, _left_out, _looks, _detectable)
    yield from _wrapped(chain.from_iterable(lines_of(views) for lines_of in kinds), width)
    yield from work_notes(views, width=width)


def work_notes(views: Sequence[ComparedWork], *, width: int) -> Iterator[str]:
    """Yield the notes on what the rows of a table run, wrapped: each of them once for each candidate."""
    kinds = (_clocks, other_work, _unoptimized, _slow_paths)
    yield from _wrapped(chain.from_iterable(lines_of(views) for lines_of in kinds), width)


def _wrapped(lines: Iterable[str], width: int) -> Iterator[str]:
    for line in lines:
        yield from wrap(line, width, subsequent_indent="  ", break_on_hyphens=False)


def _reasons(views: Sequence[SpeedupView]) -> Iterator[str]:
    undecided = [view for view in views if view.verdict is Verdict.UNDECIDED and view.reason]
    for reason, names in _by_text((view.candidate, view.reason or "") for view in undecided):
        yield f"note: {names}: {reason}"


def _left_out(views: Sequence[SpeedupView]) -> Iterator[str]:
    """Yield what is left out by reason; where it would change the row, with what the row would say."""
    texts = []
    for view in views:
        parts = [f"{part.blocks} x {part.reason}" for part in view.left_out]
        is_told = any(part.reason != SUPERSEDED_BLOCK for part in view.left_out)
        row, with_them = (value and ratio_text(value) for value in (view.speedup, view.speedup_of_all))
        told = f"; with them {with_them}" if is_told and with_them and with_them != row else ""
        if parts:
            texts.append((view.candidate, f"{', '.join(parts)}{told}"))
    for text, names in _by_text(texts):
        yield f"left out of {names}: {text}"
    if changed := [view.candidate for view in views if view.selection_matters]:
        yield f"caution: {_names(changed)}: what is left out differs by more than the interval's half-width"


def _looks(views: Sequence[SpeedupView]) -> Iterator[str]:
    pooled = [
        (view.candidate, ", ".join(map(str, view.matrices))) for view in views if len(view.matrices) > 1
    ]
    for matrices, names in _by_text(pooled):
        looks = plural(matrices.count(",") + 1, "look")
        yield f"pooled: {names}: rounds of matrices {matrices} (equal versions): {looks}"


def _detectable(views: Sequence[SpeedupView]) -> Iterator[str]:
    rows = [(view.candidate, f"{view.detectable:.1%}") for view in views if view.detectable is not None]
    grouped = list(_by_text(rows))
    if not grouped:
        return
    texts = sorted({text for _, text in rows}, key=lambda text: float(text.rstrip("%")))
    if len(grouped) == 1:
        shown = texts[0]
    elif len(grouped) <= _MAX_VALUES:
        shown = "; ".join(f"{text} ({names})" for text, names in grouped)
    else:
        shown = f"{texts[0]} to {texts[-1]}, each in `farm speedups --json`"
    yield f"smallest difference so many rounds show: {shown}"


def _clocks(views: Sequence[ComparedWork]) -> Iterator[str]:
    """Yield what the clock of each harness covers, where rows compare harnesses."""
    covers: dict[str, str | None] = {}
    for view in views:
        if view.clock_covers is not None:
            covers[view.baseline_harness or ""] = view.baseline_clock_covers
            covers[view.harness] = view.clock_covers
    for harness, text in covers.items():
        yield f"clock of {harness}: {text}"


def other_work(views: Sequence[ComparedWork]) -> Iterator[str]:
    """Yield which rows compare times of different work: of other clocks, or of other numbers of tokens."""
    if others := [*dict.fromkeys(view.candidate for view in views if view.clocks_differ)]:
        yield f"caution: {_names(others)}: its clock covers other work than the baseline's, or may"
    different = [
        (view.candidate, f"{view.tokens}; the baseline: {view.baseline_tokens}")
        for view in views
        if view.tokens_differ
    ]
    for text, names in _by_text(different):
        yield f"caution: {names}: its tokens are other than the baseline's, or may be: {text}"


def _unoptimized(views: Sequence[ComparedWork]) -> Iterator[str]:
    flattered = dict.fromkeys(
        view.candidate for view in views if view.baseline_unoptimized and not view.unoptimized
    )
    if flattered:
        yield (
            f"caution: {_names([*flattered])}: the baseline is not optimized for mobile (its weights are not"
            " packed for XNNPACK, or nothing tuned its loops); a phone may run an optimized file faster,"
            " and these speedups would then be smaller"
        )


def _slow_paths(views: Sequence[ComparedWork]) -> Iterator[str]:
    """Yield which files have a way of computing that is known to be slow, of either side."""
    sides = [
        *((view.baseline, view.baseline_slow_path, view.virtual) for view in views),
        *((view.candidate, view.slow_path, view.virtual) for view in views),
    ]
    found = dict.fromkeys(
        (name, path) for name, path, virtual in sides if path and _matters(path, virtual=virtual)
    )
    for text, names in _by_text((name, _slow_path_text(path)) for name, path in found):
        yield f"caution: {names}: {text}"


def _matters(path: SlowPath, *, virtual: bool) -> bool:
    """Return whether a device is one on which this is slow: virtual ones have the CPU of a PC."""
    return virtual or path is not SlowPath.SIGNED_ACTIVATIONS


def _slow_path_text(path: SlowPath) -> str:
    match path:
        case SlowPath.PORTABLE_KERNELS:
            return (
                "ExecuTorch's portable kernels compute convolutions of it, which is for reference; a file for"
                " XNNPACK is many times as fast"
            )
        case SlowPath.DYNAMIC_RANGE:
            return (
                "its convolutions quantize activations in each run (dynamic range), which may take longer"
                " than float32; int8-core and int8-full are quantized before"
            )
        case SlowPath.SIGNED_ACTIVATIONS:
            return (
                "its QLinear operators take signed activations, for which ONNX Runtime has no quick kernels"
                " on x86; unsigned ones with quantization nodes (QDQ) are many times as fast"
            )
        case _:
            assert_never(path)


def _by_text(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each text with the names of its rows."""
    names_by_text: dict[str, list[str]] = {}
    for name, text in dict.fromkeys(rows):
        names_by_text.setdefault(text, []).append(name)
    for text, names in names_by_text.items():
        yield text, _names(names)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < _MAX_NAMES else f"{len(names)} candidates"


def discovered_rows(views: Sequence[SpeedupView]) -> frozenset[int]:
    """Return the cells of the rows that stand when all are judged together; A/A pairs are no question."""
    rows = _family(views)
    if len(rows) < 2:
        return frozenset()
    found = discoveries([view.p_value or 0.0 for view in rows])
    return frozenset(view.cell_id for view, is_discovery in zip(rows, found, strict=True) if is_discovery)


def _family(views: Iterable[SpeedupView]) -> list[SpeedupView]:
    return [view for view in views if view.p_value is not None and not view.aa]


def legend(views: Sequence[SpeedupView], *, width: int) -> Iterator[str]:
    """Yield what columns and verdicts mean, what chance would name, and the A/A pairs of each device."""
    yield from LEGEND
    for line in (*_interval_rules(views), *_chance(views), *_alarms(views)):
        yield from wrap(line, width, subsequent_indent="     ", break_on_hyphens=False)


def _interval_rules(views: Sequence[SpeedupView]) -> Iterator[str]:
    kinds = {view.interval.kind for view in views}
    if IntervalKind.LOOK in kinds:
        yield (
            "(look k of n): rounds are added until a row is decided; its interval is that of its last look,"
            f" wide enough that all looks together are wrong in {1 - CONFIDENCE:.0%}."
        )
    if IntervalKind.ANYTIME in kinds:
        yield (
            "Rows with rounds to come, and pooled ones, have wider intervals, which hold however often they"
            " are inspected."
        )


def _chance(views: Sequence[SpeedupView]) -> Iterator[str]:
    rows = len(_family(views))
    if rows > 1:
        yield (
            f"{DISCOVERY} = stands when all {rows} rows are judged together (Benjamini-Hochberg,"
            f" {FALSE_DISCOVERIES:.0%}). Were all equal, {named_by_chance(rows):.1f} rows would be faster or"
            " slower by chance alone."
        )


def _alarms(views: Sequence[SpeedupView]) -> Iterator[str]:
    if not any(view.aa for view in views):
        return
    yield "A/A: the baseline against its duplicate, which also joins the baseline of the other rows."
    by_device = {device_name(view): view.aa_alarms for view in views if view.aa_alarms is not None}
    for device, share in by_device.items():
        expected = 1 - CONFIDENCE
        text = (
            f"A/A on {device}: {share.alarms} of its last {plural(share.pairs, 'pair')} left out 1,"
            f" {share.alarms / share.pairs:.0%} (95 % interval {share.low:.0%} to {share.high:.0%};"
            f" {expected:.0%} by chance)"
        )
        yield text + (": its other rows cannot be trusted." if share.low > expected else ".")
