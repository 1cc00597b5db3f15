"""Comparisons by device, model, harness and matrix, and how they are named in tables."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from farm.core.results.statistics.verdict import verdict_text
from farm.presentation.labels import shared_flags_text, short_labels
from farm.presentation.text import EMPTY_CELL
from farm.wire.documents.results.history import GroupSpeedupView
from farm.wire.documents.results.speedups import SpeedupView

#: Labels of duplicates have it already.
_AA_SUFFIX = " (A/A)"


def blocks_by_device(views: Iterable[SpeedupView]) -> list[list[SpeedupView]]:
    """Return comparisons by device, model and harness of the baseline, and matrix; as they are given."""
    return [list(block) for _, block in groupby(sorted(views, key=_block_key), key=_block_key)]


def by_cell(views: Iterable[SpeedupView]) -> list[SpeedupView]:
    """Return comparisons in the order of their matrices."""
    return sorted(views, key=lambda view: view.cell_id)


def _block_key(view: SpeedupView) -> tuple[str, str, str, int]:
    its = view.baseline_setup
    return view.device_id, its.model or "", its.harness, view.matrix_id


def with_short_labels(views: Sequence[SpeedupView]) -> list[SpeedupView]:
    """Return comparisons of one model whose labels show what differs: without the words of all labels."""
    short = short_labels(label for view in views for label in (view.candidate, view.baseline))
    return [
        view.model_copy(update={"candidate": short[view.candidate], "baseline": short[view.baseline]})
        for view in views
    ]


def setup_text(views: Sequence[SpeedupView]) -> str:
    """Return model, words of all labels, harness and matrix."""
    view = views[0]
    short = with_short_labels(views)[0]
    left_out = [word for word in view.candidate.split() if word not in short.candidate.split()]
    sides = [side for each in views for side in (each.baseline_setup, each)]
    models = dict.fromkeys(own.model for own in sides)
    harnesses = dict.fromkeys(own.harness for own in sides)
    common = " ".join(word for word in left_out if word not in models and "=" not in word)
    # Labels have the models where they differ.
    model = view.model if len(models) == 1 else None
    return ", ".join(filter(None, [model, common, *harnesses, f"matrix {view.matrix_id}"]))


def shown_verdict(view: SpeedupView) -> str:
    """Return a verdict as tables show it, with what is not the same on both sides: `faster, other clock`."""
    verdict = verdict_text(view.verdict, margin=view.margin)
    return ", ".join(filter(None, [verdict, other_work_text(view)]))


def other_work_text(view: SpeedupView | GroupSpeedupView) -> str:
    """Return what is not the same on both sides: `other clock` or `other tokens`; empty if nothing is."""
    if view.clocks_differ:
        return "other clock"
    return "other tokens" if view.tokens_differ else ""


def shown_baseline(view: SpeedupView) -> str:
    """Return the baseline as tables name it."""
    return baseline_text(view.baseline, unoptimized=view.baseline_setup.unoptimized)


def baseline_text(baseline: str, *, unoptimized: bool) -> str:
    """Return `float32 lite (unoptimized)` for a file that phones could run faster."""
    return f"{baseline} (unoptimized)" if unoptimized else baseline


def shared_settings(views: Sequence[SpeedupView]) -> str:
    """Return the flags that are the same in all rows and in no label."""
    return shared_flags_text(views, without={word for view in views for word in view.candidate.split()})


def row_name(view: SpeedupView, *, name_baseline: bool) -> str:
    """Return the candidate as its row is named, with the baseline where rows have several."""
    name = view.candidate.removesuffix(_AA_SUFFIX) + (_AA_SUFFIX if view.aa else "")
    return f"{name} vs {shown_baseline(view)}" if name_baseline else name


def blocks_by_comparison(views: Iterable[GroupSpeedupView]) -> list[list[GroupSpeedupView]]:
    """Return groups by model, harness, candidate and baseline, each block as they are given."""
    return [list(block) for _, block in groupby(sorted(views, key=_comparison_key), key=_comparison_key)]


def _comparison_key(view: GroupSpeedupView) -> tuple[str, str, str, str]:
    return view.model or "", view.harness, view.candidate, view.baseline


def group_name(view: GroupSpeedupView) -> str:
    """Return what the devices of a group have in common, and whether they are virtual."""
    return f"{view.group or EMPTY_CELL}{' (virtual)' if view.virtual else ''}"


def group_setup_text(view: GroupSpeedupView) -> str:
    """Return model, harness and baseline of a comparison over devices."""
    harnesses = dict.fromkeys([view.baseline_harness or view.harness, view.harness])
    setup = ", ".join(filter(None, [view.model, *harnesses]))
    return f"{setup}; baseline {baseline_text(view.baseline, unoptimized=view.baseline_unoptimized)}"
