"""Comparisons by device, model, harness and matrix, and how they are named in tables."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from farm.presentation.labels import shared_flags_text, short_labels
from farm.wire.documents.matrices.matrices import SpeedupView

#: Labels of duplicates have it already.
_AA_SUFFIX = " (A/A)"


def blocks_by_device(views: Iterable[SpeedupView]) -> list[list[SpeedupView]]:
    """Return comparisons by device, model, harness and matrix; within these in the order that they have."""
    return [list(block) for _, block in groupby(sorted(views, key=_block_key), key=_block_key)]


def by_cell(views: Iterable[SpeedupView]) -> list[SpeedupView]:
    """Return comparisons in the order of their matrices."""
    return sorted(views, key=lambda view: view.cell_id)


def _block_key(view: SpeedupView) -> tuple[str, str, str, int]:
    return view.device_id, view.model or "", view.harness, view.matrix_id


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
    common = " ".join(word for word in left_out if word != view.model and "=" not in word)
    return ", ".join(filter(None, [view.model, common, view.harness, f"matrix {view.matrix_id}"]))


def shared_settings(views: Sequence[SpeedupView]) -> str:
    """Return the flags that are the same in all rows and in no label."""
    return shared_flags_text(views, without={word for view in views for word in view.candidate.split()})


def row_name(view: SpeedupView, *, name_baseline: bool) -> str:
    """Return the candidate as its row is named, with the baseline where rows have several."""
    name = view.candidate.removesuffix(_AA_SUFFIX) + (_AA_SUFFIX if view.aa else "")
    return f"{name} vs {view.baseline}" if name_baseline else name
