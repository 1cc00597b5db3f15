"""The network as a `.tflite`, written by the schema in LiteRT's wheel: its converter would take 2 GB."""

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy
from ai_edge_litert import schema_py_generated as schema
from network import LAYERS, OUTPUTS, SIDE
from torch import nn


def tflite_of(net: nn.Module) -> bytes:
    """Return the network's file, whose signature `main` has an input `input` and an output `output`."""
    graph = _Graph()
    layers = [part for part in net.modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    for layer, (kind, _, _) in zip(layers, LAYERS, strict=False):
        graph.convolve(layer, depthwise=kind == "depthwise")
    graph.average()
    graph.multiply(layers[-1])
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(graph.model().Pack(builder), b"TFL3")
    return bytes(builder.Output())


class _Graph:
    """A graph of one input, NHWC, whose last tensor the next operator reads."""

    def __init__(self) -> None:
        self.buffers, self.tensors, self.operators = [schema.BufferT()], [], []
        self.codes: list[int] = []
        self.shape: tuple[int, ...] = (1, SIDE, SIDE, 3)
        self._add_tensor(self.shape)

    def convolve(self, layer: Any, *, depthwise: bool) -> None:
        """Add a convolution with ReLU; torch's weights are output, input, rows, columns."""
        [stride, _], [pad, _] = layer.stride, layer.padding
        if stride > 1:
            # SAME would have the padding of an even size behind the last pixels only.
            self._pad(pad)
        order = (1, 2, 3, 0) if depthwise else (0, 2, 3, 1)
        weights = layer.weight.detach().numpy().transpose(order)
        name = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        options = getattr(schema, f"{name}T")()
        options.padding = schema.Padding.VALID if stride > 1 else schema.Padding.SAME
        options.strideH = options.strideW = stride
        options.dilationHFactor = options.dilationWFactor = 1
        options.fusedActivationFunction = schema.ActivationFunctionType.RELU
        if depthwise:
            options.depthMultiplier = 1
        side = (self.shape[1] - layer.kernel_size[0]) // stride + 1 if stride > 1 else self.shape[1]
        kind = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
        constants = [weights, layer.bias.detach().numpy()]
        self._add(kind, constants, (1, side, side, layer.out_channels), (name, options))

    def average(self) -> None:
        """Add the average over rows and columns."""
        options = schema.ReducerOptionsT()
        options.keepDims = False
        axes = numpy.array([1, 2], numpy.int32)
        self._add("MEAN", [axes], (1, self.shape[3]), ("ReducerOptions", options))

    def multiply(self, layer: Any) -> None:
        """Add the last matrix."""
        constants = [layer.weight.detach().numpy(), layer.bias.detach().numpy()]
        options = schema.FullyConnectedOptionsT()
        self._add("FULLY_CONNECTED", constants, (1, OUTPUTS), ("FullyConnectedOptions", options))

    def model(self) -> Any:
        """Return the whole model."""
        last = len(self.tensors) - 1
        graph, model = schema.SubGraphT(), schema.ModelT()
        graph.tensors, graph.operators = self.tensors, self.operators
        graph.inputs, graph.outputs = [0], [last]
        model.version, model.buffers, model.subgraphs = 3, self.buffers, [graph]
        model.operatorCodes = [_code(kind) for kind in self.codes]
        ends = ([schema.TensorMapT(name, index)] for name, index in (("input", 0), ("output", last)))
        model.signatureDefs = [schema.SignatureDefT(*ends, "main")]
        return model

    def _pad(self, pad: int) -> None:
        around = numpy.array([[0, 0], [pad, pad], [pad, pad], [0, 0]], numpy.int32)
        side = self.shape[1] + 2 * pad
        self._add("PAD", [around], (1, side, side, self.shape[3]), ("PadOptions", schema.PadOptionsT()))

    def _add(
        self, kind: str, constants: Sequence[Any], made: tuple[int, ...], options: tuple[str, Any]
    ) -> None:
        number = getattr(schema.BuiltinOperator, kind)
        if number not in self.codes:
            self.codes.append(number)
        operator = schema.OperatorT()
        operator.opcodeIndex = self.codes.index(number)
        operator.inputs = [len(self.tensors) - 1, *(self._add_constant(values) for values in constants)]
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, options[0])
        operator.builtinOptions = options[1]
        operator.outputs = [self._add_tensor(made)]
        self.operators.append(operator)
        self.shape = made

    def _add_constant(self, values: Any) -> int:
        buffer = schema.BufferT()
        buffer.data = numpy.frombuffer(numpy.ascontiguousarray(values).tobytes(), numpy.uint8)
        self.buffers.append(buffer)
        return self._add_tensor(
            values.shape, buffer=len(self.buffers) - 1, integers=values.dtype == numpy.int32
        )

    def _add_tensor(self, shape: tuple[int, ...], *, buffer: int = 0, integers: bool = False) -> int:
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = f"t{len(self.tensors)}", list(shape), buffer
        tensor.type = schema.TensorType.INT32 if integers else schema.TensorType.FLOAT32
        self.tensors.append(tensor)
        return len(self.tensors) - 1


def _code(kind: int) -> Any:
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = kind
    code.version = 1
    return code
