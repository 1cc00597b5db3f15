"""Definitions of generic harnesses, as their authors write them."""

import json
from pathlib import Path

import pytest

from farm.core.base.safe_regex import first_line, pattern_problem
from farm.core.errors import HarnessInvalid
from farm.harness.generic.adapter import GenericHarness
from farm.wire.documents.files.harness_definition import (
    HarnessDefinition,
    definition_from_text,
    harness_definition,
)

EXAMPLES = Path(__file__).parents[3] / "examples"
TEXT = """\
name: infer
arguments: --model=${model} --threads=${threads} "--note=a b" ${backend_arguments}
flags:
  threads: {default: 1, minimum: 1}
backends:
  cpu: {}
  gpu: {arguments: [--gpu], proof: 'on (.*)'}
samples: {json: "$.ms", unit: ms}
"""


TIME = {"pattern": "([0-9.]+) ms", "unit": "ms"}


def refused(text: str) -> str:
    with pytest.raises(HarnessInvalid) as caught:
        definition_from_text(text)
    return f"{caught.value.message}\nhint: {caught.value.hint}"


def refused_with(**changes: object) -> str:
    data = {"name": "infer", **changes}
    with pytest.raises(HarnessInvalid) as caught:
        harness_definition(data)
    return caught.value.message


def test_a_definition_survives_being_kept() -> None:
    definition = definition_from_text(TEXT)
    kept = json.dumps(definition.model_dump(mode="json"))
    assert HarnessDefinition.model_validate_json(kept) == definition
    assert harness_definition(json.loads(kept)) == definition


def test_a_definition_without_newer_keys_is_kept_as_before_them() -> None:
    """The digest of a program is also of its definition, so new keys in it would break every series."""
    kept = harness_definition({"name": "x", "value": TIME}).model_dump(mode="json")
    assert sorted(kept) == [
        *("arguments", "backends", "clock_covers", "flags", "iterations_flag", "metrics", "name"),
        *("needs_model", "samples", "stream", "success_exit_codes", "unsupported", "value"),
    ]
    scattering = harness_definition({"name": "x", "value": TIME, "deviation": {**TIME, "unit": "%"}})
    assert harness_definition(json.loads(scattering.model_dump_json())) == scattering


def test_defaults_keep_their_types_while_they_are_kept() -> None:
    flags = {name: {"default": default} for name, default in {"a": 1, "b": 1.0, "c": True, "d": "1"}.items()}
    definition = harness_definition({"name": "x", "flags": flags, "arguments": "${a}${b}${c}${d}"})
    kept = HarnessDefinition.model_validate_json(definition.model_dump_json())
    assert [type(flag.default) for flag in kept.flags.values()] == [int, float, bool, str]


def test_one_text_of_arguments_is_told_apart_as_a_shell_would() -> None:
    words = definition_from_text(TEXT).arguments
    assert words[2] == "--note=a b"
    listed = harness_definition({"name": "x", "arguments": ["--note=a b"]})
    assert listed.arguments == ("--note=a b",)


def test_a_backend_called_as_its_accelerator_need_not_say_it() -> None:
    backends = definition_from_text(TEXT).definition().backends
    assert [backend.accelerator for backend in backends.values()] == ["cpu", "gpu"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ("argumnets: x", "argumnets (line 9): unknown key `argumnets`\nhint: did you mean `arguments`?"),
        ("metrics: {m: {pattern: '(x)', unit: MB}}", "metrics.m.better (line 9): is missing"),
        ("unsupported: ['(']", "unsupported[0] (line 9): not a regular expression of RE2: missing ): ("),
        ("unsupported: ['(?=a)']", "unsupported[0] (line 9): not a regular expression of RE2"),
        ("value: {pattern: x, unit: ms}", "value.pattern (line 9): has 0 groups"),
        ("value: {pattern: (x), unit: ms}", "value (line 9): is one number for a whole run, and `samples`"),
        ("iterations_flag: threds", "hint: did you mean `threads`?"),
        ("stream: stdin", "stream (line 9)"),
        ("success_exit_codes: [256]", "success_exit_codes[0] (line 9)"),
        ("name: other", "line 9, column 1: `name` is there already, in line 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(changed: str, told: str) -> None:
    assert told in refused(f"{TEXT}{changed}\n")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": "a b"}, "`a b` is no name"),
        ({"arguments": "'x"}, "a quotation has no end"),
        ({"arguments": "${x}"}, "nothing is called ${x}"),
        ({"arguments": "costs $5"}, "has a dollar that starts no ${name}"),
        ({"flags": {"x": {"default": 1}}}, "flags.x: no argument uses it"),
        ({"flags": {"x y": {"default": 1}}}, "`x y` is no flag's name"),
        ({"flags": {"backend": {"default": 1}}, "arguments": "${backend}"}, "is a word of matrices"),
        ({"flags": {"x": {"default": "", "minimum": 1}}, "arguments": "${x}"}, "only numbers have one"),
        ({"flags": {"x": {"default": 0, "minimum": 1}}, "arguments": "${x}"}, "the default, 0, is less"),
        ({"flags": {"x": {"default": 0, "split": True}}, "arguments": "${x}"}, "only a text can be split"),
        (
            {"flags": {"x": {"default": "", "split": True}}, "arguments": "-x${x}"},
            "cannot be a part of `-x${x}`",
        ),
        ({"needs_model": True}, "no argument is ${model}"),
        ({"needs_model": False, "arguments": "${model}"}, "is false, and the arguments use ${model}"),
        ({"backends": {}}, "backends: "),
        ({"backends": {"opencl": {}}}, "backends.opencl: says no accelerator"),
        ({"backends": {"cpu": {"proof": "x"}}}, "needs no proof"),
        ({"backends": {"gpu": {"arguments": "--gpu"}}}, "none of these words is ${backend_arguments}"),
        ({"samples": {"unit": "ms"}}, "needs either a `pattern` or a `json` path"),
        ({"samples": {"json": "$.a b", "unit": "ms"}}, "` b` is no step"),
        ({"samples": {"json": "a", "unit": "ms"}}, "a path starts with `$`"),
        ({"samples": {"json": "$.a", "unit": "MB"}}, "`MB` is no unit of time"),
        ({"flags": {"n": {"default": 5}}, "arguments": "${n}", "iterations_flag": "n"}, "there are none"),
        ({"deviation": TIME}, "deviation: says how the iterations behind a `value` scatter, and there is"),
        ({"samples": TIME, "deviation": TIME}, "scatter, and there is none"),
        ({"value": TIME, "minimum": TIME}, "minimum: says nothing without `maximum`"),
        ({"value": TIME, "minimum": TIME, "maximum": TIME}, "name its flag by `iterations_flag`"),
        ({"value": TIME, "deviation": {**TIME, "unit": "MB"}}, "deviation.unit: `MB` is no unit of time"),
        ({"value": TIME, "deviation": {**TIME, "unit": "fps"}}, "is in fps, and `value` in ms"),
        ({"value": TIME, "deviation": {"unit": "%"}}, "deviation: needs either a `pattern` or a `json` path"),
        ({"value": {**TIME, "unit": "%"}}, "value.unit: `%` is no unit of time"),
        ({"samples": {**TIME, "pattern": "(.{0,900})"}}, "samples.pattern: its counted repetitions"),
        ({"unsupported": ["x", "(?:.{0,300}x){2}"]}, "unsupported[1]: its counted repetitions"),
        ({"backends": {"gpu": {"proof": "(?:.{9}x){99}"}}}, "backends.gpu.proof: its counted repetitions"),
    ],
)
def test_what_contradicts_itself_is_refused(changes: dict[str, object], told: str) -> None:
    assert told in refused_with(**changes)


@pytest.mark.parametrize("text", ["- a", "5", "a: [", "name: 2020-01-01", ""])
def test_what_is_no_definition_at_all_is_refused(text: str) -> None:
    assert "definition" in refused(text)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("harness-*.yaml")), ids=lambda path: path.name)
def test_the_examples_are_definitions(path: Path) -> None:
    GenericHarness(definition_from_text(path.read_text()).definition())


def test_there_are_examples() -> None:
    assert list(EXAMPLES.glob("harness-*.yaml"))


def test_no_pattern_takes_for_ever() -> None:
    """Backtracking, this one takes 2 to the power of 50 steps."""
    assert pattern_problem("(a+)+$") is None
    assert first_line("(a+)+$", "a" * 50 + "b") is None
    assert "1 to 1000 characters" in str(pattern_problem("a" * 1001))
