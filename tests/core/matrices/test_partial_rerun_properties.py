"""Parts of a matrix: whatever fails, what is compared stays together, and indexes stay right."""

from hypothesis import given
from hypothesis import strategies as st

from farm.core.matrices.expansion import expand
from farm.core.matrices.matrix import Cell, Expansion, MatrixSpec
from farm.core.matrices.partial_rerun import compared_cells, select_cells
from tests.core.matrices.expansion.test_expansion_properties import HARNESS, VARIANTS, device


def expansion(*, aa: bool, threads: int) -> Expansion:
    plan = MatrixSpec(
        name="m",
        harness="h",
        axes={
            "model": ("a",),
            "precision": ("float32", "int8-core"),
            "format": ("torchscript",),
            "backend": ("cpu",),
            "threads": tuple(range(1, threads + 1)),
        },
        devices=({},),
        baseline={"precision": "float32"},
        aa=aa,
    )
    return expand(plan, variants=VARIANTS, harnesses=[HARNESS], devices=[device(1), device(2)])


def identity(cell: Cell) -> tuple[object, ...]:
    return cell.device_id, tuple(cell.key.items()), cell.replica


@given(st.booleans(), st.integers(1, 3), st.data())
def test_a_part_of_a_matrix_compares_what_the_whole_does(aa: bool, threads: int, data: st.DataObject) -> None:
    whole = expansion(aa=aa, threads=threads)
    indexes = [cell.index for cell in whole.cells]
    wanted = data.draw(st.sets(st.sampled_from(indexes), min_size=1))
    kept = compared_cells(whole.cells, wanted)
    part = select_cells(whole, kept)
    assert wanted <= kept
    assert [cell.index for cell in part.cells] == list(range(len(kept)))
    original = {identity(cell): cell for cell in whole.cells}
    for cell in part.cells:
        before = original[identity(cell)]
        if before.baseline_index is None:
            assert cell.baseline_index is None
        else:
            assert cell.baseline_index is not None
            assert identity(part.cells[cell.baseline_index]) == identity(whole.cells[before.baseline_index])
    for index in wanted & {cell.index for cell in whole.cells if cell.is_baseline}:
        assert {cell.index for cell in whole.cells if cell.baseline_index == index} <= kept
    assert compared_cells(whole.cells, indexes) == set(indexes)
