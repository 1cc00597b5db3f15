"""Post-training static quantization: int8 inside, with a float or a quantized interface. Imports torch."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.ao import quantization

from farm.variants.recipe import QCONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The quantization of a network's input: real value = scale x (stored value - zero point)."""

    scale: float
    zero_point: int

    def quantized(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the batch as quint8, in its memory format."""
        return torch.quantize_per_tensor(batch, self.scale, self.zero_point, torch.quint8)


def int8_core(net: nn.Module, calibration: torch.Tensor) -> nn.Module:
    """Quantize a fused network in place, ranges taken from the calibration images.

    The file is not bound to the engine it is made with: the loading program packs the weights for its own.
    """
    torch.backends.quantized.engine = QCONFIG
    net.qconfig = quantization.get_default_qconfig(QCONFIG)
    quantization.prepare(net, inplace=True)
    with torch.inference_mode():
        net(calibration)
    return quantization.convert(net, inplace=True)


def int8_full(net: nn.Module) -> Interface:
    """Remove the conversions at both ends of a network that `int8_core` quantized, in place."""
    interface = Interface(scale=float(net.quant.scale), zero_point=int(net.quant.zero_point))
    net.quant = nn.Identity()
    net.dequant = nn.Identity()
    return interface
