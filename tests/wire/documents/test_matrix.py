from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from farm.core.devices.condition import Gates, ThermalStatus
from farm.core.devices.selector import SELECTOR_KEYS
from farm.core.errors import MatrixInvalid
from farm.core.matrices.matrix import MatrixSpec
from farm.wire.documents.matrices.matrix import load_matrix, matrix_spec
from farm.wire.yaml_positions import line_of
from tests.support.farm.matrix_text import matrix_from_text

TEXT = """\
name: small
harness: speed_benchmark_torch
axes:
  model: mobilenet_v2
  precision:
    - float32
    - int8-core
devices: {virtual: true}
"""
DEMO = Path(__file__).parents[3] / "examples" / "demo.yaml"


def refusal(text: str) -> MatrixInvalid:
    with pytest.raises(MatrixInvalid) as caught:
        matrix_from_text(text)
    return caught.value


def data(**changed: Any) -> dict[str, Any]:
    return {"name": "small", "harness": "h", "axes": {}, "devices": "all", **changed}


def test_scalars_and_lists_are_the_same_to_an_axis() -> None:
    plan = matrix_from_text(TEXT)
    assert plan.axes == {"model": ("mobilenet_v2",), "precision": ("float32", "int8-core")}


def test_the_demo_is_a_matrix_with_an_a_a_pair() -> None:
    plan = matrix_from_text(DEMO.read_text(encoding="utf-8"))
    assert (plan.rounds, plan.aa) == (5, True)
    assert plan.devices == ({"virtual": (True,)},)
    assert plan.baseline == {"precision": "float32", "format": "torchscript"}


def test_a_matrix_survives_json() -> None:
    spec = matrix_from_text(DEMO.read_text(encoding="utf-8") + "gates: {max_thermal_status: light}\n")
    stored = TypeAdapter(MatrixSpec)
    assert stored.validate_json(stored.dump_json(spec)) == spec
    assert matrix_spec(stored.dump_python(spec, mode="json")) == spec


@pytest.mark.parametrize(
    ("word", "sampling"), [("on", True), ("off", False), ("'off'", False), ("true", True)]
)
def test_sampling_is_on_or_off(word: str, sampling: bool) -> None:
    assert matrix_from_text(TEXT).sampling
    assert matrix_from_text(f"{TEXT}sampling: {word}\n").sampling is sampling


def test_sampling_is_nothing_else() -> None:
    assert "sampling" in refusal(f"{TEXT}sampling: 2Hz\n").message


def test_values_keep_their_types() -> None:
    spec = matrix_spec(data(settings={"a": 1, "b": True, "c": 1.0, "d": "1"}))
    assert repr(dict(spec.settings)) == "{'a': 1, 'b': True, 'c': 1.0, 'd': '1'}"


@pytest.mark.parametrize(
    ("devices", "selectors"),
    [
        ("all", ({},)),
        ({"soc": "T*"}, ({"soc": ("T*",)},)),
        ([{"soc": ["a", "b"]}, {"api_level": 34}], ({"soc": ("a", "b")}, {"api_level": (34,)})),
    ],
)
def test_devices_are_all_or_one_selector_or_several(devices: Any, selectors: Any) -> None:
    assert matrix_spec(data(devices=devices)).devices == selectors


def test_gates_are_those_of_the_core_with_their_defaults() -> None:
    assert matrix_spec(data(gates={})).gates == matrix_spec(data()).gates == Gates()
    gates = matrix_spec(data(gates={"max_thermal_status": "moderate", "max_skin_c": 41})).gates
    assert (gates.max_thermal_status, gates.max_skin_c) == (ThermalStatus.MODERATE, 41.0)


def test_selectors_have_the_keys_of_the_core() -> None:
    (selector,) = matrix_spec(data(devices=dict.fromkeys(SELECTOR_KEYS, "x"))).devices
    assert tuple(selector) == SELECTOR_KEYS


@pytest.mark.parametrize(
    ("more", "message", "hint"),
    [
        ("sttings: {}", "sttings (line 9): unknown key `sttings`", "did you mean `settings`?"),
        (
            "gates:\n  max_skn_c: 3",
            "gates.max_skn_c (line 10): unknown key `max_skn_c`",
            "did you mean `max_skin_c`?",
        ),
        ("rounds: 101", "rounds (line 9): must be at most 100", None),
        ("rounds: '5'", "rounds (line 9): must be a whole number", None),
        ("rounds: yes", "rounds (line 9): must be a whole number", None),
        ("aa: 1", "aa (line 9): must be true or false", None),
        ("timeout_s: .inf", "timeout_s (line 9): must be a finite number", None),
        ("timeout_s: .nan", "timeout_s (line 9): must be a finite number", None),
        ("settings: {iter: [1]}", "settings.iter (line 9): not a text, a number, true or false", None),
        ("settings: {iter: .nan}", "settings.iter (line 9): not a finite number", None),
        ("settings: {iter: 9223372036854775808}", "settings.iter (line 9): the number is too large", None),
        ("settings:", "settings (line 9): must be a mapping", None),
        ("exclude: 5", "exclude (line 9): must be a list", None),
        ("exclude: [{}]", "exclude[0] (line 9)", None),
        ("include:\n- a: 1\n- [b]", "include[1] (line 11): must be a mapping", None),
        ("gates: {max_thermal_status: hot}", "gates.max_thermal_status (line 9): not one of Android's", None),
    ],
)
def test_what_is_wrong_is_told_with_its_line(more: str, message: str, hint: str | None) -> None:
    answer = refusal(TEXT + more + "\n")
    assert answer.message.startswith(message)
    if hint:
        assert answer.hint == hint


def test_a_slip_in_a_selector_is_told_where_it_was_written() -> None:
    alone = refusal(TEXT.replace("virtual", "virtul"))
    assert alone.message == "devices.virtul (line 8): unknown key `virtul`"
    assert alone.hint == "did you mean `virtual`?"
    listed = refusal(TEXT.replace("{virtual: true}", "[{soc: a}, {virtul: true}]"))
    assert listed.message.startswith("devices[1].virtul")


@pytest.mark.parametrize("selectors", ["{}", "[]", "[{}]", "[{virtual: true}, {}]"])
def test_an_empty_selector_does_not_take_every_device(selectors: str) -> None:
    answer = refusal(TEXT.replace("{virtual: true}", selectors))
    assert answer.message == "devices (line 8): an empty selector; `devices: all` selects every device"


@pytest.mark.parametrize("axis", ["{}", "[]", "[[a]]", "[{b: c}]", "", "''"])
def test_an_axis_is_values(axis: str) -> None:
    answer = refusal(TEXT.replace("mobilenet_v2", axis))
    assert answer.message.startswith("axes.model (line 4): ")


def test_all_problems_are_told_with_their_places() -> None:
    answer = refusal(TEXT.replace("harness: speed_benchmark_torch\n", "harnes: x\n") + "rounds: 0\n")
    assert answer.message.splitlines() == [
        "3 problems",
        "harness: is missing",
        "rounds (line 9): must be at least 1",
        "harnes (line 2): unknown key `harnes`",
    ]
    assert answer.hint == "harnes: did you mean `harness`?"


@pytest.mark.parametrize("junk", [None, 5, "text", [1], {1: 2}, {"axes": {3: 4}}])
def test_json_that_is_no_matrix_is_refused(junk: object) -> None:
    with pytest.raises(MatrixInvalid):
        matrix_spec(junk)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a matrix is a mapping"),
        ("- a", "a matrix is a mapping"),
        ("a: [1", "line 1, column 6: not YAML"),
        ("a: 1\nb: 2\na: 3", "line 3, column 1: `a` is there already, in line 1"),
        ("axes:\n  b: 1\n  b: 2", "line 3, column 3: `b` is there already, in line 2"),
        ("on: 1", "line 1, column 1: a key is a text"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "line 3, column 3: a key is a text"),
        ("a: 2026-01-01", "line 1, column 4: a matrix has no use for a YAML timestamp"),
        ("a: !!python/object:x {}", "line 1, column 4: a matrix has no use for"),
        ("a: !!int x", "a value is not what its YAML tag says"),
        ("a: !!bool x", "a value is not what its YAML tag says"),
        ("a: " + "9" * 5000, "a value is not what its YAML tag says"),
        ("a: " + "[" * 3000, "nested too deep"),
        ("a: \x01", "not YAML"),
        ("a: 1\n---\nb: 2", "not YAML"),
        ("a" * 200_001, "200001 characters, at most 200000"),
    ],
)
def test_text_that_is_no_matrix_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(MatrixInvalid) as caught:
        load_matrix(text)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 1),
        (("axes",), 3),
        (("axes", "precision"), 5),
        (("axes", "precision", 1), 7),
        (("axes", "backend"), 3),
        (("devices", "virtual"), 8),
        (("rounds",), None),
        ((), None),
    ],
)
def test_a_place_has_a_line(path: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(TEXT, path) == line


def test_text_that_is_not_yaml_has_no_lines() -> None:
    assert line_of("a: [", ("a",)) is None
