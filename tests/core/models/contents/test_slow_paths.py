"""Ways of computing that are known to be slow, as the file shows them."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from ai_edge_litert.schema_py_generated import TensorType

from farm.core.models.contents.counted import file_contents
from farm.core.models.variant import Format, SlowPath
from tests.support.models import executorch, onnx_samples
from tests.support.models.flatbuffer_samples import Item, buffer, number, numbers, table, vector

EXECUTORCH = Path(executorch.__file__).parent
_CONV_2D, _FULLY_CONNECTED = 3, 9


def slow_path(content: bytes, format: Format) -> SlowPath | None:
    return file_contents(memoryview(content), format).slow_path


@pytest.mark.parametrize(
    ("file", "expected"), [("portable.pte", SlowPath.PORTABLE_KERNELS), ("xnnpack.pte", None)]
)
def test_convolutions_of_executorch_that_no_delegate_took(file: str, expected: SlowPath | None) -> None:
    assert slow_path((EXECUTORCH / file).read_bytes(), Format.EXECUTORCH) is expected


def tflite(kind: int, taken: int, weights: int, operands: Sequence[int] = (0, 1)) -> bytes:
    """One operator on tensors of these types."""

    def tensor(type: int) -> Item:
        return table({0: numbers("i", [1, 4, 4, 4]), 1: number("b", type)})

    operator = table({0: number("I", 0), 1: numbers("i", operands), 2: numbers("i", [2])})
    tensors = vector([tensor(taken), tensor(weights), tensor(taken)])
    graph = table({0: tensors, 3: vector([operator])})
    code = table({0: number("b", kind), 3: number("i", kind)})
    return buffer(table({1: vector([code]), 2: vector([graph]), 4: vector([table({})])}), b"TFL3")


@pytest.mark.parametrize(
    ("kind", "taken", "weights", "expected"),
    [
        (_CONV_2D, TensorType.FLOAT32, TensorType.INT8, SlowPath.DYNAMIC_RANGE),
        (_CONV_2D, TensorType.FLOAT32, TensorType.INT4, SlowPath.DYNAMIC_RANGE),
        (_CONV_2D, TensorType.INT8, TensorType.INT8, None),
        (_CONV_2D, TensorType.FLOAT32, TensorType.FLOAT32, None),
        # Language models are quantized so, for good reasons.
        (_FULLY_CONNECTED, TensorType.FLOAT32, TensorType.INT8, None),
    ],
)
def test_convolutions_of_tflite_whose_activations_are_quantized_in_each_run(
    kind: int, taken: int, weights: int, expected: SlowPath | None
) -> None:
    assert slow_path(tflite(kind, taken, weights), Format.TFLITE) is expected


def test_other_operators_may_have_any_number_of_operands() -> None:
    concatenation = 2
    content = tflite(concatenation, TensorType.FLOAT32, TensorType.FLOAT32, operands=[0, 1] * 12)
    found = file_contents(memoryview(content), Format.TFLITE)
    assert (found.slow_path, found.operators) == (None, {"CONCATENATION": 1})


@pytest.mark.parametrize(
    ("kind", "zero_point", "expected"),
    [(b"QLinearConv", 3, SlowPath.SIGNED_ACTIVATIONS), (b"QLinearConv", 2, None), (b"QLinearAdd", 3, None)],
)
def test_quantized_convolutions_of_onnx_on_signed_activations(
    kind: bytes, zero_point: int, expected: SlowPath | None
) -> None:
    field, varint = onnx_samples.field, onnx_samples.number
    tensors = [
        field(5, varint(2, zero_point), field(8, b"x_zero")),
        field(5, varint(2, 3), field(8, b"w_zero")),
        field(5, varint(2, 1), field(8, b"scale")),
    ]
    names = (b"x", b"scale", b"x_zero", b"w", b"scale", b"w_zero", b"scale", b"x_zero")
    node = field(1, *(field(1, name) for name in names), field(4, kind))
    assert slow_path(onnx_samples.model(b"".join([*tensors, node])), Format.ONNX) is expected


def test_a_program_without_convolutions_has_none() -> None:
    assert slow_path(onnx_samples.model(), Format.ONNX) is None
