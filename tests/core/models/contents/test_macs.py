"""Multiply-accumulates, counted in files of the tools themselves and in files written by hand."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.core.models.contents.counted import file_contents
from farm.core.models.contents.onnx_nodes import OnnxNode
from farm.core.models.contents.onnx_shapes import inferred_shapes
from farm.core.models.contents.tflite import BUILTIN_OPERATORS, tflite_contents
from farm.core.models.variant import Format
from tests.support.models import executorch
from tests.support.models.flatbuffer_samples import Item, buffer, number, numbers, table, text, vector
from tests.support.models.onnx_network import CHANNELS, SIDE, convolutions
from tests.support.models.onnx_samples import field, model
from tests.support.models.tflite_samples import CHANNELS as TFLITE_CHANNELS
from tests.support.models.tflite_samples import SIDE as TFLITE_SIDE
from tests.support.models.tflite_samples import conv_relu

EXECUTORCH = Path(executorch.__file__).parent


def macs(content: bytes, format: Format) -> int | str | None:
    """The count, or why there is none."""
    contents = file_contents(memoryview(content), format)
    assert (contents.macs is None) is (contents.macs_uncounted is not None)
    return contents.macs_uncounted if contents.macs is None else contents.macs


def test_each_convolution_counts_its_filter_for_each_output() -> None:
    one = TFLITE_SIDE**2 * TFLITE_CHANNELS * 9 * TFLITE_CHANNELS
    assert macs(conv_relu(layers=3), Format.TFLITE) == 3 * one
    # The file states sizes at its ends alone: those between follow.
    assert macs(convolutions(layers=2), Format.ONNX) == 2 * SIDE**2 * CHANNELS * 9 * CHANNELS
    # Two convolutions, of 3 and of 8 channels to 8, at 32 x 32.
    portable = (EXECUTORCH / "portable.pte").read_bytes()
    assert macs(portable, Format.EXECUTORCH) == 32 * 32 * 9 * (3 * 8 + 8 * 8)


def tflite(kind: int, inputs: Sequence[Item], output: Item, *, graphs: int = 1, custom: str = "") -> bytes:
    """A model of one operator, or several such graphs."""
    code = table({0: number("b", 0), 1: text(custom), 3: number("i", kind)})
    operator = table({0: number("I", 0), 1: numbers("i", range(len(inputs))), 2: numbers("i", [len(inputs)])})
    graph = table({0: vector([*inputs, output]), 3: vector([operator])})
    return buffer(table({1: vector([code]), 2: vector([graph] * graphs)}), b"TFL3")


def test_models_of_one_file_are_counted_where_only_one_has_a_graph() -> None:
    def models() -> Iterator[memoryview]:
        """Yield views that are gone when the next one is asked for, as those of LiteRT-LM's sections."""
        for content in contents:
            with memoryview(content) as view:
                yield view

    contents = [conv_relu(layers=1)]
    assert tflite_contents(models()).macs == TFLITE_SIDE**2 * TFLITE_CHANNELS * 9 * TFLITE_CHANNELS
    contents = [conv_relu(layers=1)] * 2
    assert "2 graphs" in (tflite_contents(models()).macs_uncounted or "")


def tensor(*shape: int, signature: Sequence[int] = ()) -> Item:
    return table({0: numbers("i", shape), **({7: numbers("i", signature)} if signature else {})})


@pytest.mark.parametrize(
    ("name", "inputs", "output", "count"),
    [
        ("CONV_2D", [(1, 9, 9, 6), (4, 3, 3, 2)], (1, 7, 7, 4), 7 * 7 * 4 * 3 * 3 * 2),
        ("DEPTHWISE_CONV_2D", [(1, 9, 9, 6), (1, 3, 3, 6)], (1, 7, 7, 6), 7 * 7 * 6 * 3 * 3),
        ("FULLY_CONNECTED", [(2, 5), (3, 5)], (2, 3), 2 * 3 * 5),
        ("BATCH_MATMUL", [(4, 2, 5), (4, 5, 3)], (4, 2, 3), 4 * 2 * 5 * 3),
        # The first matrix is transposed.
        ("BATCH_MATMUL", [(4, 5, 2), (4, 5, 3)], (4, 2, 3), 4 * 2 * 5 * 3),
        ("TRANSPOSE_CONV", [(4,), (8, 3, 3, 6), (1, 5, 5, 6)], (1, 11, 11, 8), 5 * 5 * 6 * 3 * 3 * 8),
        ("CONV_3D", [(1, 4, 4, 4, 2), (3, 3, 3, 2, 5)], (1, 2, 2, 2, 5), 8 * 5 * 27 * 2),
        ("CONV_3D_TRANSPOSE", [(5,), (3, 3, 3, 5, 2), (1, 2, 2, 2, 2)], (1, 4, 4, 4, 5), 16 * 27 * 5),
        ("ADD", [(2, 5), (2, 5)], (2, 5), 0),
    ],
)
def test_operators_of_tflite_count_what_they_multiply(
    name: str, inputs: Sequence[Sequence[int]], output: Sequence[int], count: int
) -> None:
    content = tflite(BUILTIN_OPERATORS.index(name), [tensor(*shape) for shape in inputs], tensor(*output))
    assert macs(content, Format.TFLITE) == count


FREE = tensor(1, 7, 7, 4, signature=(-1, 7, 7, 4))
CONVOLUTION = [tensor(1, 9, 9, 6), tensor(4, 3, 3, 2)]


def onnx_node(kind: str, domain: str = "") -> bytes:
    return model(
        field(
            1,
            field(1, b"x"),
            field(1, b"w"),
            field(2, b"z"),
            field(4, kind.encode()),
            field(7, domain.encode()),
        )
    )


@pytest.mark.parametrize(
    ("content", "format", "reason"),
    [
        (tflite(3, CONVOLUTION, FREE), Format.TFLITE, "sizes are free"),
        (
            tflite(3, CONVOLUTION[:1], tensor(1)),
            Format.TFLITE,
            "does not state the sizes of an operator CONV_2D",
        ),
        (
            tflite(16, CONVOLUTION, tensor(1)),
            Format.TFLITE,
            "what its operator LSTM multiplies is not in the file",
        ),
        (tflite(32, CONVOLUTION, tensor(1), custom="Own"), Format.TFLITE, "its operator Own multiplies"),
        (tflite(3, CONVOLUTION, tensor(1, 7, 7, 4), graphs=2), Format.TFLITE, "it has 2 graphs"),
        (onnx_node("Conv"), Format.ONNX, "does not state the size of w (Conv)"),
        (onnx_node("If"), Format.ONNX, "its operator If multiplies"),
        (onnx_node("GroupQueryAttention", "com.microsoft"), Format.ONNX, "com.microsoft.GroupQueryAttention"),
        (onnx_node("Conv", "com.example"), Format.ONNX, "com.example.Conv"),
        (
            (EXECUTORCH / "xnnpack.pte").read_bytes(),
            Format.EXECUTORCH,
            "inside of the delegate XnnpackBackend",
        ),
        (b"7767517\n1 1\nInput data 0 1 data\n", Format.NCNN, "does not state the sizes"),
        (b"PK", Format.LITE, "lite files do not show their operators"),
        (b"broken", Format.TFLITE, "the file does not show its operators"),
    ],
)
def test_what_is_not_wholly_in_the_file_is_not_counted_and_the_reason_is_said(
    content: bytes, format: Format, reason: str
) -> None:
    uncounted = macs(content, format)
    assert isinstance(uncounted, str)
    assert reason in uncounted


#: Writes networks as ONNX and prints what torch counts, in FLOP: two for each multiply-accumulate.
EXPORTED = """
import sys
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 8, bias=False), nn.Linear(8, 12)
    def forward(self, x):
        y = self.second(self.first(x))
        return torch.softmax(y @ y.transpose(1, 2), -1) @ x

NETS = {
    "convolutions": (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(),
            nn.Conv2d(8, 8, 5, groups=8, dilation=2), nn.MaxPool2d(3, 2), nn.Conv2d(8, 16, 1),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(16, 5),
        ),
        (2, 3, 33, 33),
    ),
    "transposed": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2)), (1, 3, 9, 9)
    ),
    "row": (nn.Conv1d(4, 6, 3), (1, 4, 20)),
    "products": (Pair(), (3, 7, 12)),
}
for name, (net, shape) in NETS.items():
    net, sample = net.eval(), torch.randn(shape)
    with FlopCounterMode(display=False) as counter:
        net(sample)
    torch.onnx.export(net, (sample,), f"{sys.argv[1]}/{name}.onnx", dynamo=False, opset_version=17)
    print(name, counter.get_total_flops())
"""


@pytest.mark.long
@pytest.mark.skipif(find_spec("torch") is None or find_spec("onnx") is None, reason="torch exports nothing")
def test_a_file_has_half_as_many_macs_as_torch_counts_flop(tmp_path: Path) -> None:
    import onnx

    words = [sys.executable, "-W", "ignore", "-c", EXPORTED, str(tmp_path)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    counted = dict(line.split() for line in ran.stdout.splitlines())
    assert counted.keys() == {"convolutions", "transposed", "row", "products"}
    for name, flop in counted.items():
        path = tmp_path / f"{name}.onnx"
        assert macs(path.read_bytes(), Format.ONNX) == int(flop) // 2, name
        bare = onnx.load(path)
        del bare.graph.value_info[:]
        assert macs(bare.SerializeToString(), Format.ONNX) == int(flop) // 2, name
        assert macs(as_ort(path), Format.ORT) == int(flop) // 2, name


def as_ort(path: Path) -> bytes:
    """An ONNX file in ONNX Runtime's own format, optimized as far as it is alike on every CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path.with_suffix(".ort"))
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return path.with_suffix(".ort").read_bytes()


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "Conv"])
def test_a_window_over_an_image_without_sides_is_no_error(kind: str) -> None:
    inputs = ("image", "filter")[: 2 if kind == "Conv" else 1]
    node = OnnxNode(kind=kind, domain="", inputs=inputs, outputs=("out",))
    shapes = inferred_shapes([node], {"image": (4, 8), "filter": (6, 8)})
    assert shapes.get("out", (4,))[0] == 4
