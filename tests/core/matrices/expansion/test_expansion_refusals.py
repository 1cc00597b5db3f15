"""Matrices that are refused: unknown names and values, settings of the wrong kind, contradictions."""

from typing import Any

import pytest

from farm.core.errors import SelectorEmpty
from farm.core.matrices.expansion import expand
from tests.core.matrices.expansion.test_expansion import (
    AXES,
    FOUR,
    device,
    expanded,
    harness,
    plan,
    refusal,
    variant,
)


def test_an_unknown_model_is_refused_with_the_one_probably_meant() -> None:
    answer = refusal(axes={**AXES, "model": ("mobilenetv2",)})
    assert answer.message == "axes.model: no model `mobilenetv2`"
    assert answer.hint == "did you mean `mobilenet_v2`?"


def test_an_unknown_model_like_no_other_is_refused_with_what_there_is_and_what_builds_it() -> None:
    answer = refusal(axes={**AXES, "model": ("resnet18",)})
    assert (
        answer.hint == "known here: mobilenet_v2; `farm variant build` and `farm variant add` register models"
    )


def test_an_unknown_model_on_an_empty_farm_is_refused_with_what_builds_it() -> None:
    assert refusal(variants=[]).hint == "`farm variant build` and `farm variant add` register models"


@pytest.mark.parametrize(
    ("axis", "value", "hint"),
    [
        ("precision", "INT8-core", "did you mean `int8-core`?"),
        ("format", "light", "did you mean `lite`?"),
        ("backend", "CPU", "did you mean `cpu`?"),
        ("memory_format", "contigous", "did you mean `contiguous`?"),
    ],
)
def test_an_unknown_value_is_refused_with_the_one_probably_meant(axis: str, value: str, hint: str) -> None:
    answer = refusal(axes={**AXES, axis: (value,)})
    assert answer.message == f"axes.{axis}: no {axis} `{value}`"
    assert answer.hint == hint


def test_an_unknown_flag_is_refused_with_the_one_probably_meant() -> None:
    answer = refusal(settings={"itr": 3})
    assert answer.message == "settings.itr: `itr` is neither an axis nor a flag of speed_benchmark_torch"
    assert answer.hint == "did you mean `iter`?"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iter": "30"}, "settings.iter: `30` is a text, iter takes a whole number"),
        ({"iter": 30.0}, "settings.iter: `30.0` is a number, iter takes a whole number"),
        ({"iter": True}, "settings.iter: `True` is true or false, iter takes a whole number"),
        ({"quick": 1}, "settings.quick: `1` is a whole number, quick takes true or false"),
        ({"input": 1}, "settings.input: `1` is a whole number, input takes a text"),
        ({"factor": True}, "settings.factor: `True` is true or false, factor takes a number"),
        ({"iter": 0}, "settings.iter: iter is 0, at least 1"),
        ({"model": "x"}, "settings.model: `model` is an axis"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused(settings: dict[str, Any], message: str) -> None:
    assert refusal(settings=settings).message == message


def test_a_number_above_a_flags_greatest_is_refused() -> None:
    bounded = harness(maximums={"iter": 80_000})
    answer = refusal(on=bounded, settings={"iter": 80_001})
    assert answer.message == "settings.iter: iter is 80001, at most 80000"
    assert expanded(on=bounded, settings={"iter": 80_000}).cells


def test_a_word_that_is_none_of_a_flags_choices_is_refused_with_the_closest() -> None:
    choosy = harness(choices={"input": ("first", "cold")})
    answer = refusal(on=choosy, settings={"input": "frist"})
    assert answer.message == "settings.input: no input `frist`"
    assert answer.hint == "did you mean `first`?"
    assert expanded(on=choosy, axes={**AXES, "input": ("first", "cold")}).cells


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"axes": {"model": ("mobilenet_v2",)}}, "axes: `precision` is missing"),
        ({"axes": {}}, "axes: `model` is missing"),
        ({"axes": {**AXES, "threads": ()}}, "axes.threads: has no values"),
        ({"axes": {**AXES, "threads": (1, 1)}}, "axes.threads: a value is there twice"),
        ({"axes": {**AXES, "iter": (1, 2)}, "settings": {"iter": 1}}, "settings.iter: `iter` is an axis too"),
        ({"exclude": ({"threads": 3},)}, "exclude[0]: no cell of the axes has {threads: 3}"),
        ({"exclude": ({"precison": "float32"},)}, "exclude[0].precison: `precison` is neither"),
        ({"baseline": {"precision": "bfloat16"}}, "baseline: no cell has {precision: bfloat16}"),
        ({"baseline": {"precision": "Bfloat16"}}, "baseline.precision: no precision `Bfloat16`"),
        ({"baseline": {"threads": 1}}, "baseline: every cell has {threads: 1}"),
        ({"aa": True}, "aa: an A/A pair is a baseline and its replica"),
        ({"axes": {**AXES, "iter": tuple(range(1, 300_000))}}, "1199996 cells, at most 1000000"),
        (
            {"axes": {**AXES, "iter": tuple(range(1, 60_000))}},
            "239996 keys are more than a device may have cells, at most 200000",
        ),
        ({"axes": {**AXES, "iter": tuple(range(1, 20_000))}, "rounds": 100}, "jobs, at most 1000000"),
        (
            {"variants": [variant(1, "mobilenet_v2", "float32", "lite", target="vulkan")]},
            "none of its cells can run",
        ),
    ],
)
def test_a_matrix_that_makes_no_sense_is_refused(changed: dict[str, Any], message: str) -> None:
    assert message in refusal(**changed).message


def test_a_baseline_whose_candidates_all_lack_their_files_is_refused() -> None:
    answer = refusal(variants=FOUR[:1], baseline={"precision": "float32", "format": "torchscript"}, aa=True)
    assert "nothing is left to compare with the baseline: mobilenet_v2/float32/lite is not" in answer.message
    assert answer.hint == "`farm variant build mobilenet_v2 --precision float32 --format lite`"


def test_of_many_missing_files_the_first_are_named() -> None:
    models = tuple(f"net-{number}" for number in range(9))
    variants = [variant(at, name, "float32", "lite", target="vulkan") for at, name in enumerate(models, 1)]
    message = refusal(axes={**AXES, "model": models}, variants=variants, baseline=None).message
    assert message.count("is not registered") == 5
    assert message.splitlines()[0].endswith(" more reasons")


def test_everything_that_is_wrong_is_told_at_once() -> None:
    answer = refusal(axes={**AXES, "format": ("lit", "torchscript")}, settings={"itr": 1})
    assert answer.message.splitlines() == [
        "2 problems",
        "axes.format: no format `lit`",
        "settings.itr: `itr` is neither an axis nor a flag of speed_benchmark_torch",
    ]
    assert answer.hint == "axes.format: did you mean `lite`?\nsettings.itr: did you mean `iter`?"


def test_a_baseline_that_cannot_run_is_refused_with_the_reason() -> None:
    answer = refusal(variants=FOUR[1:], baseline={"precision": "float32", "format": "torchscript"})
    assert "cannot run: mobilenet_v2/float32/torchscript is not registered" in answer.message
    assert answer.hint == "`farm variant build mobilenet_v2 --precision float32 --format torchscript`"


def test_a_selector_that_fits_nothing_is_refused() -> None:
    with pytest.raises(SelectorEmpty, match="virtual: false"):
        expand(
            plan(devices=({"virtual": (False,)},)),
            variants=FOUR,
            harnesses=[harness()],
            devices=[device("phone-1")],
        )
