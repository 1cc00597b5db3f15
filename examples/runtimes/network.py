"""One small network with random weights, for the runtimes that are compared.

Convolutions and depthwise convolutions with ReLU, an average over the image, and a matrix of ten outputs. The
weights are drawn, not trained: times and placement are real, what it recognizes is nothing.
"""

import torch
from torch import nn

from farm.variants.sources.samples import CALIBRATION_SAMPLES, Sample, images, samples_of

SIDE, OUTPUTS, SEED = 128, 10, 17
#: Kind, channels, stride; a depthwise convolution keeps its channels.
LAYERS = (
    *(("full", 32, 2), ("depthwise", 32, 1), ("point", 64, 1)),
    *(("depthwise", 64, 2), ("point", 128, 1), ("depthwise", 128, 1), ("point", 128, 1)),
    *(("depthwise", 128, 2), ("point", 256, 1), ("depthwise", 256, 1), ("point", 256, 1)),
)


def network() -> nn.Sequential:
    """Return the network, the same on every call."""
    torch.manual_seed(SEED)
    parts: list[nn.Module] = []
    channels = 3
    for kind, made, stride in LAYERS:
        size = 1 if kind == "point" else 3
        groups = channels if kind == "depthwise" else 1
        layer = nn.Conv2d(channels, made, size, stride=stride, padding=size // 2, groups=groups)
        # Signals keep their size: with torch's own initial weights they would shrink from layer to layer.
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        parts += [layer, nn.ReLU()]
        channels = made
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, OUTPUTS)).eval()


def ones() -> torch.Tensor:
    """Return the input of every run: executor_runner has no other one."""
    return torch.ones(1, 3, SIDE, SIDE)


def calibration() -> tuple[Sample, ...]:
    """Return the inputs that quantized files have their ranges from; that of the runs is among them."""
    return (
        *samples_of(images((CALIBRATION_SAMPLES, 3, SIDE, SIDE), CALIBRATION_SAMPLES, seed=SEED)),
        (ones(),),
    )
