"""A small network as `.tflite`, written with the schema of the wheel ai-edge-litert, without TensorFlow."""

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy
from ai_edge_litert import schema_py_generated as schema

#: One convolution of 3x3 with ReLU behind it, NHWC; a millisecond's work or so for one core.
SIDE, CHANNELS = 96, 16
PARAMETERS = CHANNELS * 3 * 3 * CHANNELS + CHANNELS
_SHAPE = (1, SIDE, SIDE, CHANNELS)
_VERSION = 3
_TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int32": schema.TensorType.INT32,
    "int8": schema.TensorType.INT8,
}


def conv_relu(layers: int = 3, *, custom: str | None = None, is_normalized: bool = False) -> bytes:
    """Convolutions in a row; with `custom`, an operator behind them that no runtime knows.

    With `is_normalized` one is behind them that XNNPACK lacks, and LiteRT's own kernels have.
    """
    random = numpy.random.default_rng(20)
    model, graph = _network(numpy.float32)
    for number in range(layers):
        weights = random.normal(0, 0.1, (CHANNELS, 3, 3, CHANNELS)).astype(numpy.float32)
        constants = [_constant(model, graph, each) for each in (weights, weights[:, 0, 0, 0])]
        graph.tensors.append(_tensor(f"relu_{number}", _SHAPE))
        graph.operators.append(_convolution([_behind(number), *constants], len(graph.tensors) - 1))
    if custom is not None:
        _append(model, graph, _code(schema.BuiltinOperator.CUSTOM, custom))
    if is_normalized:
        operator = _append(model, graph, _code(schema.BuiltinOperator.L2_NORMALIZATION))
        operator.builtinOptionsType = schema.BuiltinOptions.L2NormOptions
        operator.builtinOptions = schema.L2NormOptionsT()
    return _packed(model, graph)


def conv_int8(layers: int = 3) -> bytes:
    """Convolutions in a row whose numbers are int8, with a scale for each channel of the weights."""
    random = numpy.random.default_rng(20)
    model, graph = _network(numpy.int8)
    _quantize(graph.tensors[0], [1 / 128], zero_point=0)
    input_scale = 1 / 128
    for number in range(layers):
        weights = random.normal(0, 30, (CHANNELS, 3, 3, CHANNELS)).clip(-127, 127).astype(numpy.int8)
        scales = [0.003 + 0.0001 * channel for channel in range(CHANNELS)]
        bias = random.integers(-500, 500, CHANNELS).astype(numpy.int32)
        constants = [_constant(model, graph, each) for each in (weights, bias)]
        _quantize(graph.tensors[constants[0]], scales, zero_point=0)
        _quantize(graph.tensors[constants[1]], [scale * input_scale for scale in scales], zero_point=0)
        graph.tensors.append(_tensor(f"relu_{number}", _SHAPE, kind=numpy.int8))
        input_scale = 6 / 255
        _quantize(graph.tensors[-1], [input_scale], zero_point=-128)
        graph.operators.append(_convolution([_behind(number), *constants], len(graph.tensors) - 1))
    return _packed(model, graph)


def _network(kind: type) -> tuple[Any, Any]:
    """Return a model and its graph, with an input."""
    model: Any = schema.ModelT()
    model.version, model.description = _VERSION, "conv_relu"
    model.buffers = [schema.BufferT()]
    model.operatorCodes = [_code(schema.BuiltinOperator.CONV_2D)]
    graph: Any = schema.SubGraphT()
    graph.tensors, graph.operators = [_tensor("input", _SHAPE, kind=kind)], []
    return model, graph


def _packed(model: Any, graph: Any) -> bytes:
    graph.inputs, graph.outputs = [0], [len(graph.tensors) - 1]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _behind(number: int) -> int:
    """Return the tensor that a layer gets: each layer adds its weights, its bias and its output."""
    return 3 * number


def _code(kind: int, custom: str | None = None) -> Any:
    code: Any = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = kind
    code.version, code.customCode = 1, custom
    return code


def _tensor(name: str, shape: Sequence[int], buffer: int = 0, *, kind: type = numpy.float32) -> Any:
    tensor: Any = schema.TensorT()
    tensor.name, tensor.shape, tensor.buffer = name, list(shape), buffer
    tensor.type = _TYPES[numpy.dtype(kind).name]
    return tensor


def _quantize(tensor: Any, scales: Sequence[float], *, zero_point: int) -> None:
    tensor.quantization = schema.QuantizationParametersT()
    tensor.quantization.scale = list(scales)
    tensor.quantization.zeroPoint = [zero_point] * len(scales)


def _constant(model: Any, graph: Any, values: "numpy.ndarray[Any, Any]") -> int:
    buffer: Any = schema.BufferT()
    buffer.data = numpy.frombuffer(values.tobytes(), numpy.uint8)
    model.buffers.append(buffer)
    name, kind = f"constant_{len(graph.tensors)}", values.dtype.type
    graph.tensors.append(_tensor(name, values.shape, len(model.buffers) - 1, kind=kind))
    return len(graph.tensors) - 1


def _convolution(inputs: list[int], output: int) -> Any:
    options: Any = schema.Conv2DOptionsT()
    options.padding, options.strideH, options.strideW = schema.Padding.SAME, 1, 1
    options.dilationHFactor = options.dilationWFactor = 1
    options.fusedActivationFunction = schema.ActivationFunctionType.RELU
    operator: Any = schema.OperatorT()
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, inputs, [output]
    operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.Conv2DOptions, options
    return operator


def _append(model: Any, graph: Any, code: Any) -> Any:
    """Append an operator to what is there; return it."""
    model.operatorCodes.append(code)
    graph.tensors.append(_tensor("appended", _SHAPE))
    operator: Any = schema.OperatorT()
    operator.opcodeIndex = 1
    operator.inputs, operator.outputs = [len(graph.tensors) - 2], [len(graph.tensors) - 1]
    graph.operators.append(operator)
    return operator
