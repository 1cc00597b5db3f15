"""Flags that are filled in from the inputs of files, and files that cannot run as asked."""

import re
from typing import Any

import pytest

from farm.core.base.setting_values import SettingValue
from farm.core.devices.selector import KnownDevice
from farm.core.errors import MatrixInvalid
from farm.core.matrices.expansion import expand
from farm.core.matrices.matrix import Expansion, KnownHarness, KnownVariant, MatrixSpec
from farm.core.models.declared_inputs import declared_input
from farm.core.models.variant import Format, Manifest, TensorSpec
from farm.core.results.series import series_digest
from farm.harness.base.options import flag_defaults
from farm.harness.registry import get_options
from tests.core.matrices.expansion.test_expansion import device, variant

DEVICES: list[KnownDevice] = [device("phone-1")]
OPEN = TensorSpec(name="image", shape=(-1, 3, 8, 8), dtype="float32", free=("batch", "", "", ""))
FORMATS = {
    "speed_benchmark_torch": Format.TORCHSCRIPT,
    "benchmark_model": Format.TFLITE,
    "onnxruntime_perf_test": Format.ONNX,
    "benchncnn": Format.NCNN,
    "executor_runner": Format.EXECUTORCH,
    "mnn_benchmark": Format.MNN,
    "tvm_benchmark": Format.TVM,
}


def harness(name: str) -> KnownHarness:
    options = get_options(name)
    return KnownHarness(
        name=name,
        defaults=flag_defaults(options),
        backends=options.backends,
        abis=("x86_64",),
        unsupported=options.unsupported,
        input_settings=options.input_settings,
    )


def file_of(name: str, *inputs: TensorSpec | str, **facts: Any) -> KnownVariant:
    plain = variant(1, "net", "float32", FORMATS[name])
    specs = tuple(declared_input(spec) if isinstance(spec, str) else spec for spec in inputs)
    given = {field: getattr(plain.manifest, field) for field in Manifest.__dataclass_fields__}
    stated = {"inputs_unread": None if specs else "it does not say", "inputs": specs}
    return KnownVariant(variant_id=plain.variant_id, manifest=Manifest(**{**given, **stated, **facts}))


def expanded(name: str, file: KnownVariant, **changed: Any) -> Expansion:
    axes = {
        "model": ("net",),
        "precision": ("float32",),
        "format": (str(FORMATS[name]),),
        "backend": ("cpu",),
    }
    spec = MatrixSpec(**{"name": "m", "harness": name, "axes": axes, "devices": ({},), **changed})
    return expand(spec, variants=[file], harnesses=[harness(name)], devices=DEVICES)


def changed_settings(name: str, file: KnownVariant, **changed: Any) -> dict[str, SettingValue]:
    [cell] = expanded(name, file, **changed).cells
    defaults = harness(name).defaults
    return {flag: value for flag, value in cell.settings.items() if value != defaults[flag]}


def refusal(name: str, file: KnownVariant, **changed: Any) -> MatrixInvalid:
    with pytest.raises(MatrixInvalid) as caught:
        expanded(name, file, **changed)
    return caught.value


TORCH, TFLITE, ORT, NCNN = (
    "speed_benchmark_torch",
    "benchmark_model",
    "onnxruntime_perf_test",
    "benchncnn",
)
DECLARED = {"inputs_unread": "torchscript files do not state their inputs"}
IMAGE = ("1x3x8x8:float32", "1x4:int64")
BY_HAND: dict[str, tuple[KnownVariant, dict[str, SettingValue]]] = {
    TORCH: (
        file_of(TORCH, *IMAGE, bundled_inputs=False, **DECLARED),
        {
            "use_bundled_input": -1,
            "input_dims": "1,3,8,8;1,4",
            "input_type": "float;int64",
            "input_memory_format": "contiguous_format;contiguous_format",
        },
    ),
    TFLITE: (
        file_of(TFLITE, TensorSpec(name="x:0", shape=(2, 8), dtype="int8", free=("?", ""))),
        {"input_layer": "x:0", "input_layer_shape": "2,8"},
    ),
    ORT: (
        file_of(ORT, TensorSpec(name="x", shape=(4, 8, 9), dtype="int64", free=("batch", "", "n"))),
        {"free_dimension_override": "batch:4 n:9"},
    ),
    NCNN: (file_of(NCNN, "data=1x3x224x200:float32"), {"shape": "[200,224,3]"}),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_flags_are_filled_in_from_the_inputs(name: str) -> None:
    file, flags = BY_HAND[name]
    assert changed_settings(name, file) == flags


@pytest.mark.parametrize("name", BY_HAND)
def test_flags_by_hand_that_say_the_same_are_the_same_series(name: str) -> None:
    file, flags = BY_HAND[name]
    digests = set()
    for settings in ({}, flags, dict([*flags.items()][:1])):
        [cell] = expanded(name, file, settings=settings).cells
        digests.add(
            series_digest(
                model="net",
                recipe=file.manifest.recipe,
                backend="cpu",
                harness=name,
                settings=cell.settings,
                defaults=harness(name).defaults,
                device_id=cell.device_id,
            )
        )
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("name", "flag", "value"),
    [
        (TORCH, "input_dims", "2,3,8,8;1,4"),
        (TFLITE, "input_layer_shape", "9,8"),
        (ORT, "free_dimension_override", "batch:1"),
        (NCNN, "shape", "[1,2,3]"),
    ],
)
def test_what_a_person_states_wins_in_settings_and_as_an_axis(name: str, flag: str, value: str) -> None:
    file, _ = BY_HAND[name]
    assert changed_settings(name, file, settings={flag: value})[flag] == value
    axes = {"model": ("net",), "precision": ("float32",), "format": (FORMATS[name],), "backend": ("cpu",)}
    assert changed_settings(name, file, axes={**axes, flag: (value,)})[flag] == value


def test_a_matrix_completes_what_the_file_leaves_free() -> None:
    file = file_of(ORT, OPEN)
    assert changed_settings(ORT, file) == {}
    assert changed_settings(ORT, file, inputs=("4x3x8x8:float32",)) == {"free_dimension_override": "batch:4"}


def test_a_bundled_input_is_used_until_a_matrix_declares_another_one() -> None:
    file = file_of(TORCH, IMAGE[0], bundled_inputs=True, **DECLARED)
    assert changed_settings(TORCH, file) == {}
    assert changed_settings(TORCH, file, settings={"use_bundled_input": 0}) == {}
    declared = changed_settings(TORCH, file, inputs=("4x3x8x8:float32",))
    assert declared == {"use_bundled_input": -1, "input_dims": "4,3,8,8", "input_type": "float"}


def test_a_file_that_nothing_looked_into_runs_as_before() -> None:
    assert changed_settings(TORCH, file_of(TORCH, **DECLARED)) == {}


def test_a_channels_last_file_gets_its_images_so() -> None:
    file = variant(1, "net", "float32", "torchscript", memory_format="channels_last").manifest
    told = Manifest(
        **{
            **{field: getattr(file, field) for field in Manifest.__dataclass_fields__},
            "inputs": tuple(map(declared_input, IMAGE)),
            "bundled_inputs": False,
        }
    )
    settings = get_options(TORCH).input_settings(told, {})
    assert isinstance(settings, dict)
    assert settings["input_memory_format"] == "channels_last;contiguous_format"


@pytest.mark.parametrize(
    ("name", "file", "changed", "reason", "hint"),
    [
        (
            TORCH,
            file_of(TORCH, bundled_inputs=False, **DECLARED),
            {},
            "has to be told the inputs of net/float32/torchscript: torchscript files do not state",
            "farm variant set net/float32/torchscript --input 1x3x224x224:float32",
        ),
        (
            TORCH,
            file_of(TORCH, "1x?:int64", bundled_inputs=False, **DECLARED),
            {},
            r"sizes are open in 1x\?:int64",
            "--input 1x1:int64",
        ),
        (
            TORCH,
            file_of(TORCH, "1:quint8", bundled_inputs=False, **DECLARED),
            {},
            "makes no inputs of type quint8",
            "bundle an input",
        ),
        (
            TORCH,
            file_of(TORCH, "1:float32", bundled_inputs=False, **DECLARED),
            {"settings": {"use_bundled_input": 0}},
            "net/float32/torchscript has no bundled input",
            "leave `use_bundled_input` out",
        ),
        (NCNN, file_of(NCNN), {}, "has to be told the inputs of net/float32/ncnn", "`inputs:` for one"),
        (
            ORT,
            file_of(ORT, OPEN),
            {"inputs": ("1x3x9x9:float32",)},
            r"takes image=\?x3x8x8:float32, not 1x3x9x9:float32",
            "change `inputs`",
        ),
        (
            ORT,
            file_of(ORT, TensorSpec(name="x", shape=(2,), dtype="int8", free=("?",))),
            {},
            "sets a free dimension by its name",
            "names of dynamic axes",
        ),
        (
            TFLITE,
            file_of(TFLITE, TensorSpec(shape=(2,), dtype="int8", free=("?",))),
            {},
            "by its name, which is not known",
            "input_layer",
        ),
        (
            "executor_runner",
            file_of("executor_runner", TensorSpec(shape=(4, 8), dtype="int64", free=("?", "?"))),
            {"inputs": ("1x8:int64",)},
            "executor_runner takes its inputs from the file",
            "leave `inputs` out",
        ),
    ],
)
def test_a_file_that_cannot_run_as_asked_is_refused_before_anything_is_queued(
    name: str, file: KnownVariant, changed: dict[str, Any], reason: str, hint: str
) -> None:
    error = refusal(name, file, **changed)
    assert re.search(reason, error.message)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("settings", "filled"),
    [
        ({"no_inputs": True}, {"no_inputs": True}),
        (
            {"input_dims": "1,8", "input_type": "float"},
            {"use_bundled_input": -1, "input_dims": "1,8", "input_type": "float"},
        ),
    ],
)
def test_flags_by_hand_are_enough_where_no_input_is_known(
    settings: dict[str, SettingValue], filled: dict[str, SettingValue]
) -> None:
    file = file_of(TORCH, bundled_inputs=False, **DECLARED)
    assert changed_settings(TORCH, file, settings=settings) == filled


def test_tools_that_take_the_file_as_it_is_accept_inputs_that_say_the_same() -> None:
    file = file_of("executor_runner", "1x8:int64")
    assert changed_settings("executor_runner", file, inputs=("1x8:int64",)) == {}
    assert expanded("mnn_benchmark", file_of("mnn_benchmark")).cell_count == 1
