"""A small network as `.tflite`, written with the schema of the wheel ai-edge-litert, without TensorFlow."""

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy
from ai_edge_litert import schema_py_generated as schema

#: One convolution of 3x3 with ReLU behind it, NHWC; a millisecond's work or so for one core.
SIDE, CHANNELS = 96, 16
PARAMETERS = CHANNELS * 3 * 3 * CHANNELS + CHANNELS
_VERSION = 3


def conv_relu(layers: int = 3, *, custom: str | None = None) -> bytes:
    """Convolutions in a row; with `custom`, an operator behind them that no runtime knows."""
    random = numpy.random.default_rng(20)
    model: Any = schema.ModelT()
    model.version, model.description = _VERSION, "conv_relu"
    model.buffers = [schema.BufferT()]
    model.operatorCodes = [_code(schema.BuiltinOperator.CONV_2D)]
    graph: Any = schema.SubGraphT()
    graph.tensors = [_tensor("input", (1, SIDE, SIDE, CHANNELS))]
    graph.operators = []
    for number in range(layers):
        weights = random.normal(0, 0.1, (CHANNELS, 3, 3, CHANNELS)).astype(numpy.float32)
        inputs = [
            len(graph.tensors) - 1,
            *(_constant(model, graph, each) for each in (weights, weights[:, 0, 0, 0])),
        ]
        graph.tensors.append(_tensor(f"relu_{number}", (1, SIDE, SIDE, CHANNELS)))
        graph.operators.append(_convolution(inputs, len(graph.tensors) - 1))
    if custom is not None:
        _append_custom(model, graph, custom)
    graph.inputs, graph.outputs = [0], [len(graph.tensors) - 1]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _code(kind: int, custom: str | None = None) -> Any:
    code: Any = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = kind
    code.version, code.customCode = 1, custom
    return code


def _tensor(name: str, shape: Sequence[int], buffer: int = 0) -> Any:
    tensor: Any = schema.TensorT()
    tensor.name, tensor.shape, tensor.buffer = name, list(shape), buffer
    tensor.type = schema.TensorType.FLOAT32
    return tensor


def _constant(model: Any, graph: Any, values: "numpy.ndarray[Any, Any]") -> int:
    buffer: Any = schema.BufferT()
    buffer.data = numpy.frombuffer(values.tobytes(), numpy.uint8)
    model.buffers.append(buffer)
    graph.tensors.append(_tensor(f"constant_{len(graph.tensors)}", values.shape, len(model.buffers) - 1))
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


def _append_custom(model: Any, graph: Any, name: str) -> None:
    model.operatorCodes.append(_code(schema.BuiltinOperator.CUSTOM, name))
    graph.tensors.append(_tensor("custom", (1, SIDE, SIDE, CHANNELS)))
    operator: Any = schema.OperatorT()
    operator.opcodeIndex = 1
    operator.inputs, operator.outputs = [len(graph.tensors) - 2], [len(graph.tensors) - 1]
    graph.operators.append(operator)
