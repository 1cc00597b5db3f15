"""The command lines of generic harnesses."""

import pytest

from farm.core.base.setting_values import SettingValue
from farm.core.runs.plan import fill_argv
from tests.harness.generic import generic_samples as sample

FLAGS = {
    "threads": {"default": 1, "minimum": 1},
    "fast": {"default": False},
    "tag": {"default": "none"},
    "more": {"default": "", "split": True},
}
ARGUMENTS = "--model=${model} -j ${threads} --fast=${fast} '--tag=a ${tag}' ${more} --out=${work}/out $$HOME"
BACKENDS = {"cpu": {}, "gpu": {"arguments": "--gpu --level ${threads}", "accelerator": "gpu"}}


def filled(backend: str = "cpu", **settings: SettingValue) -> list[str]:
    infer = sample.harness(arguments=f"{ARGUMENTS} ${{backend_arguments}}", flags=FLAGS, backends=BACKENDS)
    plan = sample.plan(infer, backend=backend, **settings)
    return fill_argv(plan, work="/w", path_by_name={"program": "/c/infer", "model": "/c/model"})


def test_every_placeholder_is_filled_in_where_it_stands() -> None:
    assert filled(threads=4, fast=True) == [
        "/c/infer", "--model=/c/model", "-j", "4", "--fast=true", "--tag=a none", "--out=/w/out", "$HOME",
    ]  # fmt: skip


def test_a_backend_adds_its_own_words() -> None:
    assert filled("gpu", threads=2)[-3:] == ["--gpu", "--level", "2"]


def test_a_flag_that_is_split_stands_for_any_number_of_words() -> None:
    assert filled(more="--a 'b  c' -d")[6:9] == ["--a", "b  c", "-d"]
    assert filled(more="it's")[6:7] == ["it's"]


def test_values_of_users_are_taken_as_they_are() -> None:
    """A dollar in a value is no placeholder, of definitions or of run plans."""
    assert "--tag=a ${work} $$ $x" in filled(tag="${work} $$ $x")
    assert "${model}" in filled(more="${model}")


def test_a_flag_that_the_settings_do_not_have_is_at_its_default() -> None:
    infer = sample.harness(arguments="${threads}", flags={"threads": {"default": 3}})
    plan = infer.plan(
        sample.RunRequest(
            variant=None,
            bundle=sample.BUNDLE,
            backend="cpu",
            settings={"other": 5},
            timeout_s=1,
            gates=sample.Gates(),
        )
    )
    assert plan.argv == ("${file_program}", "3")


@pytest.mark.parametrize(("arguments", "needs"), [("--m ${model}", True), ("--size 3", False)])
def test_a_model_is_needed_where_the_arguments_use_it(arguments: str, needs: bool) -> None:
    infer = sample.harness(arguments=arguments)
    assert infer.needs_model is needs
    assert [file.name for file in sample.plan(infer).files] == ["program", *["model"] * needs]


def test_a_backend_that_the_definition_does_not_have_is_unsupported() -> None:
    infer = sample.harness(
        backends=BACKENDS, arguments="${backend_arguments} ${threads}", flags={"threads": {"default": 1}}
    )
    assert infer.unsupported(None, "gpu") is None
    assert infer.unsupported(None, "npu") == "the definition of infer has no backend 'npu': it has cpu, gpu"
