"""Cells of several harnesses in one matrix: flags, backends, programs and baselines of each."""

from dataclasses import replace
from typing import Any

import pytest

from farm.core.errors import MatrixInvalid
from farm.core.matrices.expansion import expand
from farm.core.matrices.job_template import DeviceExpansion, freeze_expansion
from farm.core.matrices.matrix import (
    Expansion,
    KnownHarness,
    RejectionKind,
    cell_label_by_axes,
    varying_axes,
)
from tests.core.matrices.expansion.test_expansion import AXES, FOUR, device, harness, plan, refusal

TORCH = harness(unsupported=lambda manifest, backend: _of_format(manifest, "torchscript"))
LITE = harness(
    name="lite_bench",
    defaults={"threads": 2, "runs": 50, "factor": 3},
    minimums={"runs": 1},
    backends=("cpu", "gpu"),
    abis=("arm64-v8a", "x86_64"),
    unsupported=lambda manifest, backend: _of_format(manifest, "lite"),
)
SCRIPT = harness(name="script", needs_model=False)
FILES = [replace(variant, manifest=replace(variant.manifest, backends=("cpu", "gpu"))) for variant in FOUR]
BOTH = (TORCH.name, LITE.name)


def _of_format(manifest: Any, format: str) -> str | None:
    return None if manifest.recipe.format == format else f"it runs {format} only"


def expanded(*harnesses: KnownHarness, devices: Any = None, **changed: Any) -> Expansion:
    known = harnesses or (TORCH, LITE)
    spec = plan(**{"harness": tuple(own.name for own in known), **changed})
    return expand(spec, variants=FILES, harnesses=known, devices=devices or [device("phone-1")])


def labels(answer: Expansion) -> list[str]:
    varying = varying_axes([slot.key for slot in answer.slots])
    return [cell_label_by_axes(cell.key, varying, replica=cell.replica) for cell in answer.cells]


def test_each_harness_runs_the_files_that_it_can_and_says_why_not_the_others() -> None:
    answer = expanded()
    assert labels(answer) == [
        "speed_benchmark_torch float32 torchscript",
        "speed_benchmark_torch int8-core torchscript",
        "lite_bench float32 lite",
        "lite_bench int8-core lite",
    ]
    assert {cell.reason for cell in answer.rejected} == {"it runs torchscript only", "it runs lite only"}


def test_a_cell_has_the_flags_of_its_harness_with_the_types_of_its_flags() -> None:
    answer = expanded(settings={"runs": 7, "iter": 9, "threads": 4, "factor": 5})
    by_harness = {cell.harness: dict(cell.settings) for cell in answer.cells}
    assert by_harness == {
        TORCH.name: {"iter": 9, "threads": 4, "input": "", "quick": False, "factor": 5.0},
        LITE.name: {"threads": 4, "runs": 7, "factor": 5},
    }
    assert type(by_harness[TORCH.name]["factor"]) is float


def test_a_cell_is_compared_with_the_harness_that_the_baseline_names() -> None:
    answer = expanded(baseline={"harness": TORCH.name, "format": "torchscript"}, aa=True)
    assert [(cell.index, cell.baseline_index, cell.replica) for cell in answer.cells] == [
        (0, None, 1),
        (1, 0, 2),
        (2, None, 1),
        (3, 2, 2),
        (4, 0, 1),
        (5, 2, 1),
    ]


def test_a_flag_axis_varies_the_cells_of_harnesses_that_have_it() -> None:
    answer = expanded(axes={**AXES, "precision": ("float32",), "runs": (50, 80)})
    assert labels(answer) == [
        "speed_benchmark_torch torchscript",
        "lite_bench lite runs=50",
        "lite_bench lite runs=80",
    ]
    [refused] = [
        cell for cell in answer.rejected if cell.key["format"] == "torchscript" and "flag" in cell.reason
    ]
    assert (refused.rejection, refused.reason) == (
        RejectionKind.UNSUPPORTED,
        "speed_benchmark_torch has no flag `runs`",
    )


def test_a_flag_without_an_axis_has_the_default_of_each_harness() -> None:
    included = {"harness": LITE.name, "model": "mobilenet_v2", "precision": "float32", "format": "lite"}
    answer = expanded(
        TORCH,
        LITE,
        harness=TORCH.name,
        axes={**AXES, "precision": ("float32",), "format": ("torchscript",)},
        include=({**included, "threads": 8}, included),
    )
    assert [(cell.harness, cell.settings["threads"]) for cell in answer.cells] == [
        (TORCH.name, 1),
        (LITE.name, 8),
        (LITE.name, 2),
    ]


def test_cells_of_a_harness_can_be_excluded() -> None:
    answer = expanded(exclude=({"harness": LITE.name, "precision": "int8-core"},))
    assert (LITE.name, "int8-core") not in {(cell.harness, cell.key["precision"]) for cell in answer.cells}
    assert len(answer.cells) == 3


def test_a_backend_of_one_harness_is_unsupported_by_the_other() -> None:
    answer = expanded(axes={**AXES, "precision": ("float32",), "backend": ("cpu", "gpu")})
    assert [(cell.harness, cell.backend) for cell in answer.cells] == [
        (TORCH.name, "cpu"),
        (LITE.name, "cpu"),
        (LITE.name, "gpu"),
    ]
    assert "speed_benchmark_torch has no backend gpu: it has cpu, vulkan" in {
        cell.reason for cell in answer.rejected
    }


def test_a_device_runs_the_harnesses_that_have_a_program_for_it() -> None:
    phones = [device("arm", abi="arm64-v8a"), device("pc")]
    answer = expanded(devices=phones, axes={**AXES, "precision": ("float32",)})
    assert [(cell.device_id, cell.harness) for cell in answer.cells] == [
        ("arm", LITE.name),
        ("pc", TORCH.name),
        ("pc", LITE.name),
    ]
    programs = {"arm": {LITE.name: 3}, "pc": {TORCH.name: 1, LITE.name: 2}}
    template = freeze_expansion(
        answer, rounds=1, seed=1, varying=frozenset(), programs_by_device={**programs}
    )
    assert template.program_ids == {1, 2, 3}
    for part in template.parts:
        cells = {cell.index: cell for cell in answer.cells if cell.device_id == part.device_id}
        frozen = DeviceExpansion(template, part)
        for placed in frozen.cells(cells):
            assert part.program_of(placed.slot) == programs[part.device_id][cells[placed.index].harness]
            assert frozen.settings(placed.slot) == cells[placed.index].settings


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"axes": {**AXES, "harness": BOTH}}, "axes.harness: harnesses stand outside of `axes`"),
        ({"settings": {"harness": "x"}}, "settings.harness: `harness` is an axis"),
        ({"settings": {"rums": 3}}, "settings.rums: `rums` is neither an axis nor a flag of"),
        ({"settings": {"runs": 0}}, "settings.runs: runs is 0, at least 1"),
        ({"metrics": ("joy",)}, "metrics[0]: speed_benchmark_torch, lite_bench prints no metric `joy`"),
        (
            {"include": ({"harness": "speed_benchmark_torch", "runs": 3},)},
            "include[0].runs: `runs` is neither an axis nor a flag of speed_benchmark_torch",
        ),
        ({"baseline": {"harness": "gone"}}, "baseline.harness: no harness `gone`"),
    ],
)
def test_what_no_harness_of_the_matrix_has_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(MatrixInvalid) as caught:
        expanded(**changed)
    assert str(caught.value).startswith(message)


def test_harnesses_with_and_without_models_are_not_mixed() -> None:
    with pytest.raises(MatrixInvalid, match="script runs no model, and speed_benchmark_torch needs one"):
        expanded(TORCH, SCRIPT)


def test_one_harness_is_no_axis() -> None:
    assert (
        "every cell has {harness: speed_benchmark_torch}"
        in refusal(baseline={"harness": "speed_benchmark_torch"}).message
    )
