"""Operators and weights, counted in files of the tools themselves and in files written by hand."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given
from hypothesis import strategies as st

from farm.core.models.contents.counted import file_contents
from farm.core.models.contents.counts import FileContents
from farm.core.models.contents.tflite import BUILTIN_OPERATORS, tflite_contents
from farm.core.models.variant import Format
from tests.support.models import executorch, mnn, onnx_samples
from tests.support.models.flatbuffer_samples import buffer, number, numbers, shared, table, text, vector
from tests.support.models.onnx_network import CHANNELS, convolutions
from tests.support.models.tflite_samples import PARAMETERS, conv_relu

EXECUTORCH, MNN = Path(executorch.__file__).parent, Path(mnn.__file__).parent
NCNN = b"7767517\n3 3\nInput data 0 1 data 0=2\nReLU a 1 1 data b\nReLU c 1 1 b out\n"


def counted(content: bytes, format: Format) -> FileContents:
    """Operators and weights; `test_macs` is of what they multiply."""
    return replace(file_contents(memoryview(content), format), macs=None, macs_uncounted=None)


def test_tflite_has_operators_by_name_and_the_weights_of_its_constants() -> None:
    contents = counted(conv_relu(layers=3, custom="Unheard"), Format.TFLITE)
    assert contents == FileContents(parameters=3 * PARAMETERS, operators={"CONV_2D": 3, "Unheard": 1})


def test_the_names_of_tflite_are_those_of_its_schema() -> None:
    known = {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}
    assert dict(enumerate(BUILTIN_OPERATORS)) == known


def test_onnx_has_nodes_by_kind_and_the_weights_of_its_initializers() -> None:
    contents = counted(convolutions(layers=2), Format.ONNX)
    weights = 2 * CHANNELS * CHANNELS * 3 * 3
    assert contents == FileContents(parameters=weights, operators={"Conv": 2, "Relu": 2})


def test_scales_zero_points_and_shapes_are_no_weights_of_onnx() -> None:
    field, varint = onnx_samples.field, onnx_samples.number
    packed = field(1, bytes([4, 3]))
    tensors = [
        field(5, packed, varint(2, 3), field(8, b"int8")),
        field(5, varint(1, 4), varint(2, 1), field(8, b"scale")),
        field(5, varint(1, 4), varint(2, 3), field(8, b"zero")),
        field(5, varint(1, 2), varint(2, 7), field(8, b"shape")),
    ]
    inputs = [field(1, name) for name in (b"int8", b"scale", b"zero")]
    node = field(1, *inputs, field(4, b"DequantizeLinear"))
    own = field(1, field(4, b"Mine"), field(7, b"com.example"))
    contents = counted(onnx_samples.model(b"".join([*tensors, node, own])), Format.ONNX)
    assert contents.parameters == 12
    assert contents.operators == {"DequantizeLinear": 1, "Relu": 1, "com.example.Mine": 1}


def test_a_model_of_onnx_runtimes_own_format_is_counted_as_an_onnx_file() -> None:
    weight = table({0: text("w"), 2: numbers("q", [8, 3]), 3: number("i", 1)})
    node = table({5: text("Conv"), 8: vector([text("x"), text("w")])})
    content = buffer(table({1: table({7: table({0: vector([weight]), 2: vector([node])})})}), b"ORTM")
    assert counted(content, Format.ORT) == FileContents(parameters=24, operators={"Conv": 1})


@pytest.mark.parametrize(
    ("file", "operators"),
    [
        ("portable.pte", {"aten::convolution.out": 2, "aten::relu.out": 1}),
        ("xnnpack.pte", {"XnnpackBackend": 1}),
    ],
)
def test_a_program_of_executorch_calls_kernels_or_delegates(file: str, operators: Mapping[str, int]) -> None:
    contents = counted((EXECUTORCH / file).read_bytes(), Format.EXECUTORCH)
    assert replace(contents, slow_path=None) == FileContents(parameters=None, operators=operators)


def test_ncnn_has_layers_and_no_weights() -> None:
    assert counted(NCNN, Format.NCNN) == FileContents(operators={"ReLU": 2, "Input": 1})


@pytest.mark.parametrize("file", ["float32.mnn", "int8-weight-only.mnn"])
def test_mnn_has_operators_and_the_weights_of_its_convolutions_in_whatever_number_format(file: str) -> None:
    contents = counted((MNN / file).read_bytes(), Format.MNN)
    # The converter folds the normalization into the first convolution, and makes the linear layer one, too.
    assert contents.parameters == (8 * 3 * 9 + 8) + (8 * 9 + 8) + (5 * 8 + 5)
    counts = [contents.operators[name] for name in ("Convolution", "ConvolutionDepthwise", "Pooling3D")]
    assert counts == [2, 1, 1]


def test_weights_of_mnn_are_unknown_where_an_operator_keeps_its_own() -> None:
    def model(*numbers: int) -> bytes:
        return buffer(table({3: vector([table({5: number("i", each)}) for each in numbers])}), b"")

    assert counted(model(38, 7), Format.MNN) == FileContents(operators={"BinaryOp": 1, "LSTM": 1})
    assert counted(model(580), Format.MNN) == FileContents(operators={"operator 580": 1})
    assert counted(model(7), Format.MNN) == FileContents(parameters=0, operators={"BinaryOp": 1})


def test_a_format_that_shows_nothing_has_unknown_contents() -> None:
    assert counted(b"PK", Format.LITE) == FileContents()


def test_lists_that_are_shared_are_not_gone_through_again_and_again() -> None:
    chain = table({2: shared(20_000, table({0: number("B", 3)}))})
    method = table({5: shared(20_000, chain)})
    assert "instructions" in str(uncounted(buffer(table({1: vector([method])}), b"ET12"), Format.EXECUTORCH))
    node = table({8: shared(20_000, text("x"))})
    graph = table({2: shared(20_000, node)})
    content = buffer(table({1: table({7: graph})}), b"ORTM")
    assert "inputs and outputs" in str(uncounted(content, Format.ORT))
    graph = table({0: shared(20_000, table({2: number("I", 1)}))})
    content = buffer(table({2: shared(20_000, graph), 4: vector([table({}), table({})])}), b"TFL3")
    with pytest.raises(ValueError, match="tensors"):
        tflite_contents([memoryview(content)])


def uncounted(content: bytes, format: Format) -> str | None:
    return file_contents(memoryview(content), format).macs_uncounted


FORMATS = (Format.TFLITE, Format.ONNX, Format.ORT, Format.EXECUTORCH, Format.NCNN, Format.GGUF, Format.MNN)
WHOLE = [
    conv_relu(layers=1),
    convolutions(layers=1),
    (EXECUTORCH / "portable.pte").read_bytes(),
    NCNN,
    (MNN / "float32.mnn").read_bytes(),
]


@given(st.data())
def test_a_damaged_file_is_counted_or_unknown(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(WHOLE)))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=8)):
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    contents = file_contents(memoryview(bytes(content[:cut])), data.draw(st.sampled_from(FORMATS)))
    assert (contents.macs is None) is (contents.macs_uncounted is not None)
    assert contents.parameters is None or contents.parameters >= 0
    assert all(count > 0 for count in contents.operators.values())
