"""Multiply-accumulates, counted in files of the tools themselves and in files written by hand."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from farm.core.models.contents.counted import file_contents
from farm.core.models.contents.onnx_nodes import OnnxNode
from farm.core.models.contents.onnx_shapes import inferred_shapes
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
    "transposed": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2)), (1, 3, 9, 9)),
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
