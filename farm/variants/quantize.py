"""Post-training static quantization: int8 inside, float interface. Imports torch."""

import torch
from torch import nn
from torch.ao import quantization

from farm.variants.recipe import QCONFIG


def int8_core(net: nn.Module, calibration: torch.Tensor) -> nn.Module:
    """Quantize a fused network in place, ranges taken from the calibration images.

    The file is not bound to the engine it is made with: whoever loads it packs the weights for its own.
    """
    torch.backends.quantized.engine = QCONFIG
    net.qconfig = quantization.get_default_qconfig(QCONFIG)
    quantization.prepare(net, inplace=True)
    with torch.inference_mode():
        net(calibration)
    return quantization.convert(net, inplace=True)
