"""The inputs that model files state, on files that are written here by hand, whole and broken."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.models.inputs.file_inputs import FileInputs, file_inputs
from farm.core.models.variant import Format, TensorSpec
from tests.support.models import onnx_samples as onnx
from tests.support.models.flatbuffer_samples import executorch_program, ort_model, tflite_model

IMAGE = TensorSpec(name="image", shape=(1, 224, 224, 3), dtype="float32")
OPEN_IMAGE = TensorSpec(name="image", shape=(-1, 224, -1, 3), dtype="float32", free=("batch", "", "?", ""))


def read(content: bytes, format: Format) -> FileInputs:
    return file_inputs(memoryview(content), format)


def inputs_of(content: bytes, format: Format) -> tuple[TensorSpec, ...]:
    stated = read(content, format)
    assert stated.unread is None
    return stated.inputs


def onnx_input(name: str, kind: int, dimensions: Sequence[int | str]) -> bytes:
    sizes = [
        onnx.field(1, onnx.number(1, size))
        if isinstance(size, int)
        else onnx.field(1, onnx.field(2, size.encode()) if size else b"")
        for size in dimensions
    ]
    tensor = onnx.field(1, onnx.number(1, kind), onnx.field(2, *sizes))
    return onnx.field(11, onnx.field(1, name.encode()), onnx.field(2, tensor))


def ncnn(*layers: str) -> bytes:
    return "\n".join(["7767517", f"{len(layers)} {len(layers)}", *layers, ""]).encode()


TFLITE = tflite_model(("image", (1, 224, 224, 3), 0, ()), ("ids", (1, 8), 4, (1, -1)))
ONNX = onnx.model(onnx_input("image", 1, ["batch", 224, "", 3]) + onnx_input("n", 7, []))
ORT = ort_model({"image": (1, ["batch", 224, "", 3]), "w": (1, [3])}, initializers=["w"])
EXECUTORCH = executorch_program((6, (1, 3, 32, 32), False), (4, (1, 128), True))
NCNN = ncnn(
    "Input data 0 1 data 0=227 1=224 2=3", "ReLU relu 1 1 data out", "Input mask 0 1 m 0=5 -23303=1,2"
)
WHOLE = {
    Format.TFLITE: TFLITE,
    Format.ONNX: ONNX,
    Format.ORT: ORT,
    Format.EXECUTORCH: EXECUTORCH,
    Format.NCNN: NCNN,
}


def test_tflite_states_name_shape_and_type_and_which_sizes_are_free() -> None:
    assert inputs_of(TFLITE, Format.TFLITE) == (
        IMAGE,
        TensorSpec(name="ids", shape=(1, -1), dtype="int64", free=("", "?")),
    )


def test_onnx_names_free_dimensions_and_leaves_out_what_the_file_gives_a_value() -> None:
    assert inputs_of(ONNX, Format.ONNX) == (OPEN_IMAGE, TensorSpec(name="n", shape=(), dtype="int64"))
    weight = onnx_input("weight", 1, [3])
    assert inputs_of(onnx.model(weight + onnx.field(5, onnx.INSIDE)), Format.ONNX) == ()
    sparse = onnx.field(15, onnx.field(1, onnx.INSIDE))
    assert inputs_of(onnx.model(weight + sparse), Format.ONNX) == ()


def test_ort_states_the_same_as_the_onnx_model_it_was_made_from() -> None:
    assert inputs_of(ORT, Format.ORT) == (OPEN_IMAGE,)


def test_a_program_of_executorch_states_the_inputs_of_forward() -> None:
    assert inputs_of(EXECUTORCH, Format.EXECUTORCH) == (
        TensorSpec(shape=(1, 3, 32, 32), dtype="float32"),
        TensorSpec(shape=(1, 128), dtype="int64", free=("?", "?")),
    )
    assert inputs_of(executorch_program((6, (1,), False), method="run"), Format.EXECUTORCH) == ()


def test_ncnn_states_channels_first_and_images_have_a_batch_of_one() -> None:
    assert inputs_of(NCNN, Format.NCNN) == (
        TensorSpec(name="data", shape=(1, 3, 224, 227), dtype="float32"),
        TensorSpec(name="m", shape=(5,), dtype="float32"),
    )


@pytest.mark.parametrize(
    ("content", "format", "reason"),
    [
        (b"", Format.MNN, "mnn files do not state their inputs"),
        (b"", Format.TORCHSCRIPT, "torchscript files do not state their inputs"),
        (ncnn("Input in0 0 1 in0"), Format.NCNN, "layer Input of in0 states no shape"),
        (ncnn("ReLU r 1 1 a b"), Format.NCNN, "it has no layer Input"),
        (onnx.model(onnx.field(11, onnx.field(1, b"x"))), Format.ONNX, "its input x is no tensor"),
        (onnx.model(onnx_input("x", 99, [1])), Format.ONNX, "its input x has an unknown type"),
        (onnx.model(onnx_input("x", 1, [1] * 17)), Format.ONNX, "more than 16 dimensions"),
        (onnx.model(onnx_input("x", 1, [2**31])), Format.ONNX, "no possible shape"),
        (
            onnx.model(b"".join(onnx_input(f"x{number}", 1, [1]) for number in range(65))),
            Format.ONNX,
            "it has 65 inputs",
        ),
        (tflite_model(("x", (1,), 99, ())), Format.TFLITE, "its input x has an unknown type"),
        (tflite_model(("x" * 600, (1,), 0, ())), Format.TFLITE, "a name of 600 bytes"),
        (tflite_model(("x", (1,) * 17, 0, ())), Format.TFLITE, "a list has 17 numbers"),
        (tflite_model()[:40], Format.TFLITE, "the file"),
    ],
)
def test_what_cannot_be_read_is_unknown_with_the_reason(content: bytes, format: Format, reason: str) -> None:
    stated = read(content, format)
    assert stated.inputs == ()
    assert reason in (stated.unread or "")


@pytest.mark.parametrize("format", WHOLE)
def test_a_broken_file_has_unknown_inputs_and_raises_nothing(format: Format) -> None:
    whole = WHOLE[format]
    for kept in range(len(whole)):
        read(whole[:kept], format)
        for byte in (0x00, 0x7F, 0xFF):
            broken = bytearray(whole)
            broken[kept] = byte
            read(bytes(broken), format)


@given(st.binary(max_size=400))
def test_no_bytes_raise(content: bytes) -> None:
    for format in Format:
        assert read(content, format).inputs == () or read(content, format).unread is None
