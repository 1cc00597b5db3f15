"""Cells of harnesses that run no model, and of programs that lack a flag or serve several ABIs."""

from dataclasses import replace
from typing import Any

import pytest

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.selector import KnownDevice
from farm.core.matrices.expansion import expand
from farm.core.matrices.matrix import Expansion, KnownHarness, KnownVariant, MatrixSpec, RejectionKind
from farm.core.models.variant import Manifest
from tests.core.matrices.expansion.test_expansion import AXES, FOUR, device, expanded, harness, refusal


def script(**changed: Any) -> KnownHarness:
    facts = {
        "name": "my_bench",
        "needs_model": False,
        "abis": ("any",),
        "backends": ("cpu", "gpu"),
        "unsupported": lambda manifest, backend: None,
    }
    return harness(**{**facts, **changed})


def compiled(abi: str) -> list[KnownVariant]:
    return [replace(each, manifest=replace(each.manifest, abi=abi)) for each in FOUR]


def test_machine_code_is_rejected_on_phones_that_run_that_of_another_cpu() -> None:
    devices = [device("phone-1"), device("phone-2", abi="arm64-v8a")]
    answer = expanded(
        on=harness(abis=("x86_64", "arm64-v8a")), variants=compiled("arm64-v8a"), devices=devices
    )
    assert {cell.device_id for cell in answer.cells} == {"phone-2"}
    assert {(each.device_id, each.rejection, each.reason) for each in answer.rejected} == {
        (
            "phone-1",
            RejectionKind.UNSUPPORTED,
            "the file is compiled for arm64-v8a, and speed_benchmark_torch runs as x86_64 there",
        )
    }
    assert "farm variant build --target" in answer.rejected[0].hint


def test_the_program_of_a_phone_decides_which_machine_code_it_loads() -> None:
    both = KnownDevice(
        device_id=DeviceId("phone-1"),
        host=HostId("host-1"),
        facts=replace(device("phone-1").facts, abis=("arm64-v8a", "armeabi-v7a")),
    )
    for abis, loads in ((("armeabi-v7a",), "armeabi-v7a"), (("any",), "arm64-v8a")):
        on = harness(abis=abis)
        assert len(expanded(on=on, variants=compiled(loads), devices=[both]).cells) == len(FOUR)
        other = "arm64-v8a" if loads == "armeabi-v7a" else "armeabi-v7a"
        assert f"compiled for {other}" in refusal(on=on, variants=compiled(other), devices=[both]).message


def test_a_harness_without_models_needs_a_backend_only() -> None:
    answer = expanded(on=script(), axes={"backend": ("cpu", "gpu"), "threads": (1, 2)}, variants=[])
    assert [(cell.variant_id, cell.backend, cell.key["threads"]) for cell in answer.cells] == [
        (None, "cpu", 1),
        (None, "cpu", 2),
        (None, "gpu", 1),
        (None, "gpu", 2),
    ]
    assert all(set(cell.key) == {"backend", "threads"} for cell in answer.cells)


def test_the_backend_of_a_harness_without_models_is_not_guessed() -> None:
    assert refusal(on=script(), axes={"threads": (1, 2)}).message == "axes: `backend` is missing"


@pytest.mark.parametrize("axis", ["model", "precision", "format", "memory_format", "target"])
def test_axes_of_variants_are_refused_where_no_model_runs(axis: str) -> None:
    answer = refusal(on=script(), axes={"backend": ("cpu",), axis: ("lite",)})
    assert answer.message == f"axes.{axis}: `{axis}` is about a model, and my_bench runs none"


def test_a_backend_that_a_harness_without_models_cannot_measure_is_kept_with_the_reason() -> None:
    def never_on_gpu(manifest: Manifest | None, backend: str) -> str | None:
        assert manifest is None
        return "there is no gpu" if backend == "gpu" else None

    answer = expanded(on=script(unsupported=never_on_gpu), axes={"backend": ("cpu", "gpu")})
    assert [cell.backend for cell in answer.cells] == ["cpu"]
    assert [(cell.rejection, cell.reason) for cell in answer.rejected] == [
        (RejectionKind.UNSUPPORTED, "there is no gpu")
    ]


def test_a_baseline_and_its_duplicate_need_no_model() -> None:
    answer = expanded(
        on=script(), axes={"backend": ("cpu",), "threads": (1, 2)}, baseline={"threads": 1}, aa=True
    )
    assert [(cell.replica, cell.baseline_index) for cell in answer.cells] == [(1, None), (2, 0), (1, 0)]


def test_a_script_runs_on_phones_of_every_abi() -> None:
    phones = [device("a", abi="arm64-v8a"), device("b"), device("c", abi=None)]
    answer = expanded(on=script(), axes={"backend": ("cpu",)}, devices=phones)
    assert [cell.device_id for cell in answer.cells] == ["a", "b", "c"]


def lacking(**changed: Any) -> Expansion:
    on = harness(
        abis=("arm64-v8a", "x86_64"),
        missing_flags={"arm64-v8a": frozenset({"threads"}), "x86_64": frozenset()},
    )
    plan = MatrixSpec(name="m", harness=on.name, devices=({},), **{"axes": AXES, **changed})
    phones = [device("old", abi="arm64-v8a"), device("new")]
    return expand(plan, variants=FOUR, harnesses=[on], devices=phones)


def test_a_cell_with_a_flag_that_a_phones_program_lacks_is_unsupported_there_only() -> None:
    answer = lacking(axes={**AXES, "threads": (1, 4)})
    assert [cell.key["threads"] for cell in answer.cells if cell.device_id == "old"] == [1] * 4
    assert len([cell for cell in answer.cells if cell.device_id == "new"]) == 8
    assert {(cell.device_id, cell.rejection, cell.reason) for cell in answer.rejected} == {
        (
            "old",
            RejectionKind.UNSUPPORTED,
            "the arm64-v8a program of speed_benchmark_torch has no flag --threads",
        )
    }
    assert "farm harness add" in answer.rejected[0].hint


def test_a_flag_that_a_program_lacks_may_be_at_its_default() -> None:
    assert len(lacking(settings={"threads": 1}).rejected) == 0
    assert len(lacking(settings={"threads": 2}).rejected) == 4


def test_cells_whose_baseline_lacks_a_flag_on_a_phone_are_compared_to_nothing_there() -> None:
    answer = lacking(axes={**AXES, "threads": (1, 4)}, baseline={"threads": 4}, aa=True)
    old = [cell for cell in answer.cells if cell.device_id == "old"]
    assert [(cell.baseline_index, cell.is_baseline, cell.replica) for cell in old] == [(None, False, 1)] * 4
    new = [cell for cell in answer.cells if cell.device_id == "new"]
    assert [cell.index for cell in answer.cells] == list(range(len(answer.cells)))
    compared = [cell for cell in new if cell.baseline_index is not None]
    assert len(compared) == 8
    for cell in compared:
        baseline = answer.cells[cell.baseline_index or 0]
        assert (baseline.device_id, baseline.key["threads"]) == ("new", 4)
