from collections.abc import Sequence
from typing import Any

import pytest

from farm.core.base.ids import DeviceId, HostId, VariantId, digest_of
from farm.core.devices.device import DeviceFacts
from farm.core.devices.selector import KnownDevice
from farm.core.errors import MatrixInvalid
from farm.core.matrices.blocks import shuffled
from farm.core.matrices.expansion import expand
from farm.core.matrices.matrix import (
    Cell,
    Expansion,
    KnownHarness,
    KnownVariant,
    MatrixSpec,
    RejectionKind,
    cell_label_by_axes,
    varying_axes,
)
from farm.core.models.variant import Format, Manifest, Recipe


def variant(number: int, model: str, precision: str, format: str, **recipe: str) -> KnownVariant:
    name = f"{number}/{model}/{precision}/{format}/{recipe}".encode()
    manifest = Manifest(
        model=model,
        recipe=Recipe(precision=precision, format=Format(format), **recipe),
        digest=digest_of(name),
        size_bytes=1,
        backends=("cpu",),
        inputs=(),
        recipe_digest=digest_of(name),
    )
    return KnownVariant(variant_id=VariantId(number), manifest=manifest)


FOUR = [
    variant(1, "mobilenet_v2", "float32", "torchscript"),
    variant(2, "mobilenet_v2", "float32", "lite"),
    variant(3, "mobilenet_v2", "int8-core", "torchscript"),
    variant(4, "mobilenet_v2", "int8-core", "lite"),
]
AXES: dict[str, tuple[Any, ...]] = {
    "model": ("mobilenet_v2",),
    "precision": ("float32", "int8-core"),
    "format": ("torchscript", "lite"),
    "backend": ("cpu",),
}


def unsupported(manifest: Manifest, backend: str) -> str | None:
    return "vulkan is not read yet" if backend == "vulkan" else None


def harness(**changed: Any) -> KnownHarness:
    facts: dict[str, Any] = {
        "name": "speed_benchmark_torch",
        "defaults": {"iter": 200, "threads": 1, "input": "", "quick": False, "factor": 1.0},
        "minimums": {"iter": 1},
        "backends": ("cpu", "vulkan"),
        "abis": ("x86_64",),
        "unsupported": unsupported,
    }
    return KnownHarness(**{**facts, **changed})


def device(device_id: str, *, abi: str | None = "x86_64", virtual: bool = True) -> KnownDevice:
    facts = DeviceFacts(
        serialno=device_id,
        device_model="virtual",
        abis=(abi,) if abi else (),
        work_root="/data/local/tmp",
        virtual=virtual,
    )
    return KnownDevice(device_id=DeviceId(device_id), host=HostId("host-1"), facts=facts)


def plan(**changed: Any) -> MatrixSpec:
    facts: dict[str, Any] = {
        "name": "test",
        "harness": "speed_benchmark_torch",
        "axes": AXES,
        "devices": ({},),
        "rounds": 5,
    }
    return MatrixSpec(**{**facts, **changed})


def expanded(
    *,
    variants: list[KnownVariant] = FOUR,
    on: KnownHarness | None = None,
    devices: list[KnownDevice] | None = None,
    **changed: Any,
) -> Expansion:
    return expand(
        plan(**changed),
        variants=variants,
        harnesses=[on or harness()],
        devices=devices or [device("phone-1")],
    )


def refusal(**changed: Any) -> MatrixInvalid:
    with pytest.raises(MatrixInvalid) as caught:
        expanded(**changed)
    return caught.value


def pairs(cells: tuple[Cell, ...]) -> list[tuple[Any, Any]]:
    return [(cell.key["precision"], cell.key["format"]) for cell in cells]


def test_axes_are_multiplied_out_on_every_device() -> None:
    answer = expanded(devices=[device("phone-1"), device("phone-2")])
    assert [(cell.device_id, cell.variant_id) for cell in answer.cells] == [
        *[("phone-1", number) for number in (1, 2, 3, 4)],
        *[("phone-2", number) for number in (1, 2, 3, 4)],
    ]
    assert [cell.index for cell in answer.cells] == list(range(8))
    assert answer.rejected == ()


def test_a_cells_settings_are_complete_and_hold_flags_only() -> None:
    answer = expanded(axes={**AXES, "threads": (1, 2)}, settings={"iter": 30})
    assert [dict(cell.settings) for cell in answer.cells[:2]] == [
        {"iter": 30, "threads": 1, "input": "", "quick": False, "factor": 1.0},
        {"iter": 30, "threads": 2, "input": "", "quick": False, "factor": 1.0},
    ]


def test_a_whole_number_is_taken_for_a_flag_with_a_fraction() -> None:
    assert repr(expanded(settings={"factor": 2}).cells[0].settings["factor"]) == "2.0"


def test_an_excluded_cell_is_kept_with_its_rule() -> None:
    answer = expanded(exclude=({"precision": "int8-core", "format": "lite"},))
    assert pairs(answer.cells) == [
        ("float32", "torchscript"),
        ("float32", "lite"),
        ("int8-core", "torchscript"),
    ]
    [rejected] = answer.rejected
    assert (rejected.rejection, rejected.device_id) == (RejectionKind.EXCLUDED, None)
    assert rejected.reason == "exclude[0] leaves it out: {precision: int8-core, format: lite}"


def test_a_cell_without_a_registered_file_is_kept_with_what_builds_it() -> None:
    answer = expanded(variants=FOUR[:3])
    [rejected] = answer.rejected
    assert rejected.rejection is RejectionKind.NO_VARIANT
    assert rejected.hint == "`farm variant build mobilenet_v2 --precision int8-core --format lite`"
    assert len(answer.cells) == 3


def test_a_precision_is_any_word_that_a_file_has() -> None:
    files = [*FOUR, variant(9, "mobilenet_v2", "int4-g128", "lite")]
    axes = {**AXES, "precision": ("w8a16", "int4-g128", "float32"), "format": ("lite",)}
    answer = expanded(variants=files, axes=axes, baseline={"precision": "float32"})
    assert [cell.key["precision"] for cell in answer.cells] == ["int4-g128", "float32"]
    [rejected] = answer.rejected
    assert rejected.rejection is RejectionKind.NO_VARIANT
    assert rejected.hint == "`farm variant add FILE --model mobilenet_v2 --precision w8a16`"


def test_a_slip_of_a_known_precision_has_no_file_and_says_which_was_meant() -> None:
    answer = expanded(axes={**AXES, "precision": ("float32", "int8core")})
    hints = {cell.hint for cell in answer.rejected}
    assert len(answer.rejected) == 2
    assert hints == {
        "did you mean `int8-core`? Else `farm variant add FILE --model mobilenet_v2 --precision int8core`"
    }
    own = variant(9, "mobilenet_v2", "int8core", "lite")
    assert not expanded(
        variants=[*FOUR, own], axes={**AXES, "precision": ("float32", "int8core"), "format": ("lite",)}
    ).rejected


def test_a_cell_the_harness_cannot_run_is_kept_with_the_reason() -> None:
    answer = expanded(axes={**AXES, "backend": ("cpu", "vulkan")})
    assert len(answer.cells) == len(answer.rejected) == 4
    assert {(r.rejection, r.reason) for r in answer.rejected} == {
        (RejectionKind.UNSUPPORTED, "vulkan is not read yet")
    }


def test_a_file_made_for_another_backend_is_kept_with_the_reason() -> None:
    answer = refusal(
        on=harness(unsupported=lambda manifest, backend: None), axes={**AXES, "backend": ("vulkan",)}
    )
    assert "made for cpu, not for vulkan" in answer.message


def test_a_phone_whose_abi_has_no_program_keeps_its_cells_with_the_reason() -> None:
    answer = expanded(
        devices=[device("phone-1"), device("phone-2", abi="arm64-v8a"), device("phone-3", abi=None)]
    )
    assert {cell.device_id for cell in answer.cells} == {"phone-1"}
    reasons = {(r.device_id, r.reason) for r in answer.rejected}
    assert reasons == {
        ("phone-2", "no program of speed_benchmark_torch is registered for arm64-v8a"),
        ("phone-3", "no program of speed_benchmark_torch is registered for an unknown ABI"),
    }
    assert len(answer.rejected) == 8


def test_a_relative_baseline_is_the_same_cell_with_its_values_replaced() -> None:
    answer = expanded(baseline={"precision": "float32"})
    assert [(cell.is_baseline, cell.baseline_index) for cell in answer.cells] == [
        (True, None),
        (True, None),
        (False, 0),
        (False, 1),
    ]


def test_an_absolute_baseline_serves_every_cell_of_its_device() -> None:
    answer = expanded(
        baseline={"precision": "float32", "format": "torchscript"}, devices=[device("a"), device("b")]
    )
    assert [cell.baseline_index for cell in answer.cells] == [None, 0, 0, 0, None, 4, 4, 4]


def test_each_baseline_gets_a_duplicate_that_is_compared_to_it() -> None:
    answer = expanded(baseline={"precision": "float32"}, aa=True, devices=[device("a"), device("b")])
    duplicates = [cell for cell in answer.cells if cell.replica == 2]
    assert [
        (duplicate.index, duplicate.baseline_index, duplicate.is_baseline) for duplicate in duplicates
    ] == [
        (1, 0, False),
        (3, 2, False),
        (7, 6, False),
        (9, 8, False),
    ]
    assert all(answer.cells[duplicate.baseline_index or 0].key == duplicate.key for duplicate in duplicates)
    assert [cell.baseline_index for cell in answer.cells[4:6]] == [0, 2]


def test_a_cell_whose_baseline_cannot_run_has_none_and_is_none() -> None:
    answer = expanded(variants=FOUR[1:], baseline={"precision": "float32"})
    [orphan] = [cell for cell in answer.cells if cell.variant_id == 3]
    assert (orphan.baseline_index, orphan.is_baseline) == (None, False)


def test_a_flag_can_be_an_axis_and_a_baseline() -> None:
    answer = expanded(axes={**AXES, "threads": (1, 2)}, baseline={"threads": 1})
    assert [cell.baseline_index for cell in answer.cells][:4] == [None, 0, None, 2]


def test_include_adds_cells_and_fills_in_single_values() -> None:
    answer = expanded(
        axes={**AXES, "format": ("lite",)},
        include=({"precision": "float32", "format": "torchscript", "threads": 4},),
        settings={"threads": 2},
    )
    assert [(cell.variant_id, cell.key["threads"]) for cell in answer.cells] == [(2, 2), (4, 2), (1, 4)]
    assert answer.cells[2].settings["threads"] == 4


def test_include_alone_makes_a_matrix() -> None:
    full = {"model": "mobilenet_v2", "precision": "float32", "format": "lite", "backend": "cpu"}
    assert [cell.variant_id for cell in expanded(axes={}, include=(full,)).cells] == [2]


def test_include_that_leaves_an_axis_open_is_refused() -> None:
    answer = refusal(include=({"format": "lite"},))
    assert answer.message == "include[0]: is missing `precision`"


def test_include_of_a_cell_that_is_there_is_refused() -> None:
    assert "is there already" in refusal(include=({"precision": "float32", "format": "lite"},)).message
    excluded = {"precision": "float32", "format": "lite"}
    assert "is there already" in refusal(include=(excluded,), exclude=(excluded,)).message


def test_a_label_shows_only_what_varies() -> None:
    cells = expanded(axes={**AXES, "threads": (1, 2)}).cells
    among = [cell.key for cell in cells]
    varying = varying_axes(among)
    assert cell_label_by_axes(cells[7].key, varying) == "int8-core lite threads=2"
    assert cell_label_by_axes(cells[0].key, varying, replica=2) == "float32 torchscript threads=1 (A/A)"
    alone = cell_label_by_axes(cells[0].key, varying_axes(among[:1]))
    assert alone == "mobilenet_v2 float32 torchscript cpu threads=1"


def test_a_label_tells_a_target_from_the_backend_of_that_name() -> None:
    keys = [
        {"precision": "float32", "backend": name, "memory_format": "contiguous", "target": name}
        for name in ("cpu", "nnapi")
    ]
    labels = [cell_label_by_axes(key, varying_axes(keys)) for key in keys]
    assert labels == ["cpu target=cpu", "nnapi target=nnapi"]


def order_of(cells: Sequence[Cell], *, round: int, seed: int, repeat: int = 0) -> list[int]:
    """The order of cells of one device in a round."""
    indexes = [cell.index for cell in cells]
    return shuffled(indexes, f"{seed}/{cells[0].device_id}/{round}/{repeat}/")


def test_a_round_is_every_cell_once_in_an_order_of_its_own() -> None:
    cells = expanded(axes={**AXES, "threads": tuple(range(5))}).cells
    orders = {
        tuple(order_of(cells, round=round, seed=seed, repeat=repeat))
        for round in range(3)
        for seed in range(3)
        for repeat in range(2)
    }
    assert len(orders) == 18
    assert all(sorted(order) == list(range(20)) for order in orders)


def test_the_order_of_a_round_does_not_depend_on_the_order_of_the_cells() -> None:
    cells = expanded().cells
    assert order_of(cells[::-1], round=1, seed=2) == order_of(cells, round=1, seed=2)


def test_the_order_of_a_round_is_the_same_for_ever() -> None:
    assert order_of(expanded().cells, round=0, seed=1) == [3, 1, 2, 0]


def test_every_cell_is_first_equally_often() -> None:
    cells = expanded().cells
    first = [order_of(cells, round=round, seed=5)[0] for round in range(2000)]
    assert all(430 <= first.count(index) <= 570 for index in range(4))
