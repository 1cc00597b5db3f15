"""TorchScript that hands its work to Android's NNAPI, by torch's own converter. Imports torch."""

import torch
from torch import nn
from torch.backends._nnapi import prepare

from farm.core.errors import VariantInvalid

#: Error of the first run without NNAPI, as on every PC.
NO_NNAPI_HERE = "Failed to load libneuralnetworks.so"


def convert_to_nnapi(net: nn.Module, image: torch.Tensor) -> torch.jit.ScriptModule:
    """Return the network as one NNAPI model, for inputs of exactly this shape and type.

    It computes in NHWC, the only layout that pooling and most drivers support; inputs in another layout are
    copied at each run.

    Raises:
        VariantInvalid: the converter does not know an operator of the network.
    """
    _without_dropout(net)
    sample = image.contiguous(memory_format=torch.channels_last)
    sample.nnapi_nhwc = True
    try:
        return prepare.convert_model_to_nnapi(torch.jit.trace(net, sample), sample)
    except Exception as error:  # the converter raises nothing more particular
        raise VariantInvalid(
            f"torch cannot convert this network to NNAPI: {_reason(error)}",
            hint="mobilenet_v2 and the resnets convert in every precision; or build it for the target cpu",
        ) from error


def _without_dropout(net: nn.Module) -> None:
    for module in list(net.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Dropout):
                setattr(module, name, nn.Identity())


def _reason(error: Exception) -> str:
    """Return the converter's message without the graph's node and the traced file."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line.partition(" in node ")[0][:200]
