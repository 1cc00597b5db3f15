"""Wrote the models beside it: convolutions and a layer with random weights, float32 and with int8 weights.

They are kept because making them takes the environment of `farm variant build --runtime mnn`, whose Python
runs this with PYTHONPATH=. at the root of the repository.
"""

from pathlib import Path

import torch
from torch import nn

from farm.core.models.builders import INT8_WEIGHT_ONLY
from farm.core.models.variant import Format, Precision, Recipe
from farm.variants.exporters import mnn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU6(),
    nn.Conv2d(8, 8, 3, groups=8),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(8, 5),
).eval()
sample = (torch.randn(1, 3, 16, 16),)
for precision in (Precision.FLOAT32, INT8_WEIGHT_ONLY):
    path = Path(__file__).with_name(f"{precision}.mnn")
    mnn.write(net, [sample], Recipe(precision=precision, format=Format.MNN), path)
    path.with_suffix(".onnx").unlink()
