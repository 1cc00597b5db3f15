"""A network prepared for export, with inputs to check it. Imports torch."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from farm.core.models.variant import Precision, Recipe, TensorSpec
from farm.variants import networks, quantize
from farm.variants.model_zoo import get_zoo_model
from farm.variants.recipe import SEED

#: The bundled input is one of them, and depends on how many are drawn.
_CHECK_IMAGES = 6
_MEMORY_FORMAT = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedNetwork:
    """A network by its recipe. `parameters` and `flops` are those of its float32 reference."""

    net: nn.Module
    #: Inputs of the file: type and memory format are the recipe's.
    inputs: torch.Tensor
    #: The first of them, in memory of its own.
    first_input: torch.Tensor
    #: Outputs of the float32 reference for the same images.
    expected: torch.Tensor
    parameters: int
    flops: int
    #: The quantization of its input, where its interface is quantized.
    interface: quantize.Interface | None


def prepare_network(model: str, recipe: Recipe, say: Callable[[str], None]) -> PreparedNetwork:
    """Make the network by its recipe; nothing is written yet."""
    shape = get_zoo_model(model).input.shape
    say("making weights")
    net = networks.network(model)
    parameters = networks.parameter_count(net)
    net = networks.fuse(net)
    images = networks.images(shape, _CHECK_IMAGES, seed=SEED + 1)
    expected = net(images)
    flops = _flops(net, images[:1])
    net = net.to(memory_format=_MEMORY_FORMAT[recipe.memory_format])
    interface = None
    if recipe.precision is not Precision.FLOAT32:
        say("quantizing")
        net = quantize.int8_core(net, networks.images(shape, networks.CALIBRATION_IMAGES, seed=SEED))
    if recipe.precision is Precision.INT8_FULL:
        interface = quantize.int8_full(net)
    images = images.contiguous(memory_format=_MEMORY_FORMAT[recipe.memory_format])
    first = images[:1].clone()
    return PreparedNetwork(
        net=net,
        inputs=images if interface is None else interface.quantized(images),
        # Quantized after the copy: cloning a quantized tensor loses its memory format.
        first_input=first if interface is None else interface.quantized(first),
        expected=expected,
        parameters=parameters,
        flops=flops,
        interface=interface,
    )


def input_spec(inputs: torch.Tensor) -> TensorSpec:
    """Return the entry of a batch in the manifest: `quint8` where it is quantized."""
    return TensorSpec(shape=(1, *inputs.shape[1:]), dtype=str(inputs.dtype).removeprefix("torch."))


def _flops(net: nn.Module, image: torch.Tensor) -> int:
    with FlopCounterMode(display=False) as counter:
        net(image)
    return int(counter.get_total_flops())
