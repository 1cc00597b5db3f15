"""The matrix of stored cells has the same cells again, as far as names still mean the same."""

from typing import Any

import pytest

from farm.core.base.ids import DeviceId
from farm.core.matrices.expansion import expand
from farm.core.matrices.matrix import Expansion, MatrixSpec
from farm.core.matrices.repeated_cells import RepeatedCell, repeat_cells
from farm.core.matrices.rounds import SequentialRounds
from tests.core.matrices.expansion.test_expansion import AXES, FOUR, device, harness

PHONE = DeviceId("phone-1")
#: The second has flags of its own, and another default of one that both have.
HARNESSES = [
    harness(),
    harness(name="other", defaults={"repeats": 3, "threads": 2}, minimums={}, backends=("cpu",)),
]


def stored(expansion: Expansion) -> list[RepeatedCell]:
    """The cells as the farm has them in rows."""
    manifests = {variant.variant_id: variant.manifest for variant in FOUR}
    cells = []
    for cell in expansion.cells:
        manifest = None if cell.variant_id is None else manifests[cell.variant_id]
        cells.append(
            RepeatedCell(
                index=cell.index,
                baseline_index=cell.baseline_index,
                harness=cell.harness,
                variant_id=cell.variant_id,
                model=None if manifest is None else manifest.model,
                recipe=None if manifest is None else manifest.recipe,
                backend=cell.backend,
                settings=cell.settings,
                replica=cell.replica,
                program_id=7,
            )
        )
    return cells


def expanded(spec: MatrixSpec) -> Expansion:
    return expand(
        spec,
        variants=FOUR,
        harnesses=[own for own in HARNESSES if own.name in spec.harnesses],
        devices=[device(PHONE)],
    )


def spec(**changes: Any) -> MatrixSpec:
    return MatrixSpec(
        **{"name": "m", "harness": "speed_benchmark_torch", "axes": AXES, "devices": ({},), **changes}
    )


def repeated(original: MatrixSpec, *indexes: int) -> tuple[list[RepeatedCell], MatrixSpec, Expansion]:
    cells = [cell for cell in stored(expanded(original)) if cell.index in indexes]
    defaults = {own.name: own.defaults for own in HARNESSES}
    again, expansion = repeat_cells(original, cells, name="again", device_id=PHONE, defaults=defaults)
    return cells, again, expansion


BY_PRECISION = spec(baseline={"precision": "float32"})
BY_FLAG = spec(
    axes={**AXES, "precision": ("float32",), "format": ("lite",), "threads": (1, 4)},
    settings={"iter": 7},
    baseline={"threads": 1},
)
AGAINST_ITSELF = spec(
    axes={**AXES, "precision": ("float32",), "format": ("lite",)}, aa=True, baseline={"format": "lite"}
)
BY_HARNESS = spec(
    harness=("speed_benchmark_torch", "other"),
    axes={**AXES, "precision": ("float32",)},
    settings={"repeats": 9},
    baseline={"harness": "speed_benchmark_torch", "format": "lite"},
)


@pytest.mark.parametrize(
    ("original", "indexes"),
    [
        (BY_HARNESS, (1, 2)),
        (BY_HARNESS, (1, 3)),
        (BY_PRECISION, (1, 3)),
        (BY_FLAG, (0, 1)),
        (AGAINST_ITSELF, (0, 1)),
        (BY_PRECISION, (2,)),
    ],
)
def test_the_matrix_of_cells_expands_to_the_same_cells(
    original: MatrixSpec, indexes: tuple[int, ...]
) -> None:
    cells, again, expansion = repeated(original, *indexes)
    by_name = expanded(again).cells
    for one, other, cell in zip(expansion.cells, by_name, cells, strict=True):
        assert (
            one.harness,
            one.variant_id,
            one.backend,
            one.settings,
            one.replica,
            one.baseline_index,
            one.is_baseline,
        ) == (
            other.harness,
            other.variant_id,
            other.backend,
            other.settings,
            other.replica,
            other.baseline_index,
            other.is_baseline,
        )
        assert (one.variant_id, one.settings, one.replica) == (cell.variant_id, cell.settings, cell.replica)


def test_only_the_device_of_the_cells_runs_them_and_what_is_left_out_stays_out() -> None:
    original = spec(baseline={"precision": "float32"}, exclude=({"format": "torchscript"},), seed=7)
    _, again, _ = repeated(original, 0, 1)
    assert (again.devices, again.exclude, again.seed) == (({"device_id": (PHONE,)},), (), None)


def test_a_cell_that_is_compared_with_none_has_a_number_of_rounds() -> None:
    original = spec(baseline={"precision": "float32"}, rounds=SequentialRounds(at_least=6))
    _, alone, _ = repeated(original, 0)
    _, compared, _ = repeated(original, 0, 2)
    assert (alone.rounds, alone.baseline) == (6, None)
    assert compared.rounds == original.rounds
