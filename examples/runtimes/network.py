"""One small network with random weights, written as a file for each runtime that is installed here.

Convolutions and depthwise convolutions with ReLU, an average over the image, and a matrix of ten outputs. The
weights are drawn, not trained: times and placement are real, what it recognizes is nothing.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn

SIDE, OUTPUTS, SEED = 128, 10, 17
#: Kind, channels, stride; a depthwise convolution keeps its channels.
LAYERS = (
    *(("full", 32, 2), ("depthwise", 32, 1), ("point", 64, 1)),
    *(("depthwise", 64, 2), ("point", 128, 1), ("depthwise", 128, 1), ("point", 128, 1)),
    *(("depthwise", 128, 2), ("point", 256, 1), ("depthwise", 256, 1), ("point", 256, 1)),
)


def network() -> nn.Module:
    """Return the network, the same on every call."""
    torch.manual_seed(SEED)
    parts: list[nn.Module] = []
    channels = 3
    for kind, made, stride in LAYERS:
        size = 1 if kind == "point" else 3
        if size == 3:
            # The same pixels as TensorFlow's padding SAME: behind the last ones only, where the stride is 2.
            parts.append(nn.ZeroPad2d((0, 1, 0, 1) if stride == 2 else (1, 1, 1, 1)))
        groups = channels if kind == "depthwise" else 1
        layer = nn.Conv2d(channels, made, size, stride=stride, groups=groups)
        # Signals keep their size: with torch's own initial weights they would shrink from layer to layer.
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        parts += [layer, nn.ReLU()]
        channels = made
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, OUTPUTS)).eval()


def ones() -> torch.Tensor:
    """Return the input of every run: executor_runner has no other one."""
    return torch.ones(1, 3, SIDE, SIDE)


def write_torch(net: nn.Module, folder: Path) -> None:
    """Write TorchScript, and the lite interpreter's file."""
    module = torch.jit.freeze(torch.jit.script(net))
    module.save(str(folder / "net.pt"))
    module._save_for_lite_interpreter(str(folder / "net.ptl"))


def write_onnx(net: nn.Module, folder: Path) -> None:
    """Write ONNX with its weights inside."""
    import onnx  # noqa: F401  (the exporter wants it, and says so late)

    torch.onnx.export(net, (ones(),), str(folder / "net.onnx"), dynamo=False, opset_version=17)


def write_executorch(net: nn.Module, folder: Path) -> None:
    """Write a program for XNNPACK, and one for ExecuTorch's portable kernels."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    for name, partitioners in (("xnnpack", [XnnpackPartitioner()]), ("portable", [])):
        program = to_edge_transform_and_lower(torch.export.export(net, (ones(),)), partitioner=partitioners)
        (folder / f"net-{name}.pte").write_bytes(program.to_executorch().buffer)


def write_tflite(net: nn.Module, folder: Path) -> None:
    """Write a .tflite by the schema in LiteRT's wheel: its converter would take 2 GB."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    graph = _TfliteGraph(schema)
    layers = [part for part in net.modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    for layer, (kind, _, stride) in zip(layers, LAYERS, strict=False):
        graph.convolve(layer, depthwise=kind == "depthwise", stride=stride)
    graph.average()
    graph.multiply(layers[-1])
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(graph.model().Pack(builder), b"TFL3")
    (folder / "net.tflite").write_bytes(bytes(builder.Output()))


class _TfliteGraph:
    """A graph of one input, NHWC, whose last tensor the next operator reads."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.buffers, self.tensors, self.operators = [schema.BufferT()], [], []
        self.codes: list[int] = []
        self.shape = (1, SIDE, SIDE, 3)
        self._add_tensor(self.shape)

    def convolve(self, layer: Any, *, depthwise: bool, stride: int) -> None:
        """Add a convolution with ReLU; torch's weights are output, input, rows, columns."""
        order = (1, 2, 3, 0) if depthwise else (0, 2, 3, 1)
        weights = layer.weight.detach().numpy().transpose(order)
        name = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        options = getattr(self.schema, f"{name}T")()
        options.padding = self.schema.Padding.SAME
        options.strideH = options.strideW = stride
        options.dilationHFactor = options.dilationWFactor = 1
        options.fusedActivationFunction = self.schema.ActivationFunctionType.RELU
        if depthwise:
            options.depthMultiplier = 1
        side = -(-self.shape[1] // stride)
        kind = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
        constants = [weights, layer.bias.detach().numpy()]
        self._add(kind, constants, (1, side, side, layer.out_channels), (name, options))

    def average(self) -> None:
        """Add the average over rows and columns."""
        options = self.schema.ReducerOptionsT()
        options.keepDims = False
        axes = numpy.array([1, 2], numpy.int32)
        self._add("MEAN", [axes], (1, self.shape[3]), ("ReducerOptions", options))

    def multiply(self, layer: Any) -> None:
        """Add the last matrix."""
        constants = [layer.weight.detach().numpy(), layer.bias.detach().numpy()]
        options = self.schema.FullyConnectedOptionsT()
        self._add("FULLY_CONNECTED", constants, (1, OUTPUTS), ("FullyConnectedOptions", options))

    def model(self) -> Any:
        """Return the whole model."""
        graph, model = self.schema.SubGraphT(), self.schema.ModelT()
        graph.tensors, graph.operators = self.tensors, self.operators
        graph.inputs, graph.outputs = [0], [len(self.tensors) - 1]
        model.version, model.buffers, model.subgraphs = 3, self.buffers, [graph]
        model.operatorCodes = [self._code(kind) for kind in self.codes]
        return model

    def _code(self, kind: int) -> Any:
        code = self.schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = kind
        code.version = 1
        return code

    def _add(self, kind: str, constants: list[Any], made: tuple[int, ...], options: tuple[str, Any]) -> None:
        number = getattr(self.schema.BuiltinOperator, kind)
        if number not in self.codes:
            self.codes.append(number)
        operator = self.schema.OperatorT()
        operator.opcodeIndex = self.codes.index(number)
        operator.inputs = [len(self.tensors) - 1, *(self._add_constant(values) for values in constants)]
        operator.builtinOptionsType = getattr(self.schema.BuiltinOptions, options[0])
        operator.builtinOptions = options[1]
        operator.outputs = [self._add_tensor(made)]
        self.operators.append(operator)
        self.shape = made

    def _add_constant(self, values: Any) -> int:
        buffer = self.schema.BufferT()
        buffer.data = numpy.frombuffer(numpy.ascontiguousarray(values).tobytes(), numpy.uint8)
        self.buffers.append(buffer)
        return self._add_tensor(
            values.shape, buffer=len(self.buffers) - 1, integers=values.dtype == numpy.int32
        )

    def _add_tensor(self, shape: tuple[int, ...], *, buffer: int = 0, integers: bool = False) -> int:
        tensor = self.schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = f"t{len(self.tensors)}", list(shape), buffer
        tensor.type = self.schema.TensorType.INT32 if integers else self.schema.TensorType.FLOAT32
        self.tensors.append(tensor)
        return len(self.tensors) - 1


WRITERS: Mapping[str, Callable[[nn.Module, Path], None]] = {
    "torch": write_torch,
    "onnx": write_onnx,
    "tflite": write_tflite,
    "executorch": write_executorch,
}


def main() -> None:
    """Write the files of one entry of WRITERS into a folder: `network.py torch FOLDER`."""
    WRITERS[sys.argv[1]](network(), Path(sys.argv[2]))


if __name__ == "__main__":
    main()
