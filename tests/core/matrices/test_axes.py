"""What cells are compared to: one cell for all, or each to its own."""

from typing import Any

from farm.core.matrices.matrix import Cell, Expansion
from tests.core.matrices.expansion.test_expansion import AXES, FOUR, expanded, refusal


def names(answer: Expansion) -> dict[str, str | None]:
    """By cell, the cell it is compared to."""
    found: dict[str, str | None] = {}
    for cell in answer.cells:
        baseline = None if cell.baseline_index is None else answer.cells[cell.baseline_index]
        found[name(cell)] = "itself" if cell.is_baseline else baseline and name(baseline)
    return found


def name(cell: Cell) -> str:
    words: list[Any] = [cell.key["precision"], cell.key["format"], cell.key.get("threads")]
    return " ".join(str(word) for word in words if word is not None)


def test_a_baseline_that_leaves_an_axis_open_is_relative() -> None:
    answer = expanded(baseline={"format": "lite"})
    assert answer.anchor is None
    assert names(answer) == {
        "float32 torchscript": "float32 lite",
        "float32 lite": "itself",
        "int8-core torchscript": "int8-core lite",
        "int8-core lite": "itself",
    }


def test_a_baseline_that_names_every_axis_with_several_values_is_absolute() -> None:
    answer = expanded(baseline={"precision": "float32", "format": "lite"})
    assert answer.anchor == {
        "model": "mobilenet_v2",
        "precision": "float32",
        "format": "lite",
        "backend": "cpu",
    }
    assert set(names(answer).values()) == {"float32 lite", "itself"}


def test_an_absolute_baseline_serves_included_cells_with_an_axis_of_their_own() -> None:
    axes = {**AXES, "format": ("lite",)}
    fast = {"precision": "int8-core", "threads": 4}
    answer = expanded(axes=axes, include=(fast,), baseline={"precision": "float32"})
    assert names(answer)["int8-core lite 4"] == "float32 lite 1"


def test_a_baseline_that_fits_an_included_cell_too_is_relative() -> None:
    axes = {**AXES, "format": ("lite",)}
    include = ({"precision": "int8-core", "threads": 4}, {"precision": "float32", "threads": 4})
    answer = expanded(axes=axes, include=include, baseline={"precision": "float32"})
    assert names(answer) == {
        "float32 lite 1": "itself",
        "int8-core lite 1": "float32 lite 1",
        "int8-core lite 4": "float32 lite 4",
        "float32 lite 4": "itself",
    }


def test_the_one_cell_may_be_an_included_one() -> None:
    axes = {**AXES, "precision": ("int8-core",)}
    answer = expanded(
        axes=axes,
        include=({"precision": "float32", "format": "torchscript"},),
        baseline={"precision": "float32", "format": "torchscript"},
    )
    assert set(names(answer).values()) == {"float32 torchscript", "itself"}


def test_a_matrix_of_included_cells_alone_can_have_either() -> None:
    full = {"model": "mobilenet_v2", "backend": "cpu"}
    cells = tuple(
        {**full, "precision": p, "format": f}
        for p in ("float32", "int8-core")
        for f in ("lite", "torchscript")
    )
    one = expanded(axes={}, include=cells, baseline={"precision": "float32", "format": "lite"})
    assert set(names(one).values()) == {"float32 lite", "itself"}
    each = expanded(axes={}, include=cells, baseline={"precision": "float32"})
    assert names(each)["int8-core torchscript"] == "float32 torchscript"


def test_a_whole_cell_can_be_named_with_what_all_cells_have_alike() -> None:
    whole = {
        "model": "mobilenet_v2",
        "precision": "float32",
        "format": "lite",
        "backend": "cpu",
        "memory_format": "contiguous",
        "iter": 30,
        "threads": 1,
    }
    answer = expanded(settings={"iter": 30}, baseline=whole)
    assert set(names(answer).values()) == {"float32 lite", "itself"}


def test_a_baseline_with_a_flag_that_all_cells_have_otherwise_is_refused() -> None:
    answer = refusal(settings={"iter": 30}, baseline={"precision": "float32", "iter": 20})
    assert answer.message == "baseline: no cell has {precision: float32, iter: 20}: all cells have iter 30"
    assert answer.hint == "make `iter` an axis, or leave it out"


def test_a_baseline_with_a_value_that_its_axis_lacks_is_refused_with_those_it_has() -> None:
    answer = refusal(baseline={"precision": "float16"})
    assert answer.message == "baseline: no cell has {precision: float16}"
    assert answer.hint == "`precision` is float32 or int8-core here"


def test_a_cell_whose_own_baseline_is_excluded_is_compared_to_nothing() -> None:
    answer = expanded(
        exclude=({"precision": "float32", "format": "lite"},), baseline={"precision": "float32"}
    )
    assert answer.anchor is None
    assert names(answer)["int8-core lite"] is None


def test_a_baseline_whose_only_cell_is_excluded_is_refused_with_the_rule() -> None:
    answer = refusal(
        exclude=({"precision": "float32", "format": "lite"},),
        baseline={"precision": "float32", "format": "lite"},
    )
    assert "cannot run: exclude[0] leaves it out" in answer.message


def test_with_a_single_value_every_cell_is_its_own_baseline_so_that_duplicates_can_be_compared() -> None:
    answer = expanded(axes={**AXES, "precision": ("float32",)}, baseline={"precision": "float32"}, aa=True)
    duplicates = [cell for cell in answer.cells if cell.replica == 2]
    assert [duplicate.baseline_index for duplicate in duplicates] == [0, 2]
    assert len(FOUR) == 4
