"""Networks prepared for export: torchvision's with realistic weights, quantized for torch. Imports torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.ao import quantization as ao_quantization
from torch.utils.flop_counter import FlopCounterMode

from farm.core.models.variant import Precision, Recipe, TensorSpec
from farm.variants.model_zoo import get_zoo_model
from farm.variants.recipe import QCONFIG, SEED
from farm.variants.sources.samples import (
    CALIBRATION_SAMPLES,
    CHECK_SAMPLES,
    Interface,
    Sample,
    drawn_samples,
    images,
    output_row,
    samples_of,
    spec_of,
)
from farm.variants.sources.source import Source, SourceKind
from farm.variants.sources.user_network import load_network, load_weights

try:
    from torchvision.models import quantization
except RuntimeError:
    # Its published wheel is built for CUDA: beside a CPU torch its operators are missing, and importing it
    # fails at "operator torchvision::nms does not exist" unless they are declared before.
    _operators = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from torchvision.models import quantization

_MEMORY_FORMAT = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def _network(source: Source) -> nn.Module:
    """Return a network by name in eval mode whose outputs depend on its inputs, the same on every call.

    Random weights with batch-norm's initial statistics shrink every signal to about 1e-10, and quantize to
    zeros: the statistics are taken from images, and the classifier is widened.
    """
    torch.manual_seed(SEED)
    net: nn.Module = getattr(quantization, source.origin)(weights=None, quantize=False)
    if source.state_dict:
        load_weights(net, source)
    else:
        _widen_classifier(net)
        _calibrate(net, _calibration_images(source))
    return net.eval()


def _calibration_images(source: Source) -> torch.Tensor:
    """Return the images that give the ranges of a quantized network."""
    return images(get_zoo_model(source.origin).input.shape, CALIBRATION_SAMPLES, seed=SEED)


def _widen_classifier(net: nn.Module) -> None:
    last = [module for module in net.modules() if isinstance(module, nn.Linear)][-1]
    nn.init.normal_(last.weight, std=0.1)


def _calibrate(net: nn.Module, batch: torch.Tensor) -> None:
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # cumulative: the statistics are those of the images alone
    net.train()
    with torch.no_grad():
        for half in batch.chunk(2):
            net(half)


def _int8_core(net: nn.Module, calibration: torch.Tensor) -> nn.Module:
    """Quantize a fused network in place, ranges taken from the calibration images.

    The file is not bound to the engine it is made with: the loading program packs the weights for its own.
    """
    torch.backends.quantized.engine = QCONFIG
    net.qconfig = ao_quantization.get_default_qconfig(QCONFIG)
    ao_quantization.prepare(net, inplace=True)
    with torch.inference_mode():
        net(calibration)
    return ao_quantization.convert(net, inplace=True)


def _int8_full(net: nn.Module) -> Interface:
    """Remove the conversions at both ends of a network that `_int8_core` quantized, in place."""
    interface = Interface(scale=float(net.quant.scale), zero_point=int(net.quant.zero_point))
    net.quant = nn.Identity()
    net.dequant = nn.Identity()
    return interface


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedNetwork:
    """A network by its recipe. `parameters` and `flops` are those of its float32 reference."""

    #: What computes: an `nn.Module`, that of an exported program, or a TorchScript module.
    net: Any
    #: Inputs of the file: type and memory format are the recipe's.
    samples: tuple[Sample, ...]
    #: The first of them, in memory of its own.
    first: Sample
    #: Those that give ranges, as float32.
    calibration: tuple[Sample, ...]
    #: Outputs of the float32 reference for the samples, a row each.
    expected: torch.Tensor
    inputs: tuple[TensorSpec, ...]
    parameters: int | None
    #: None where the network's operations are not counted: TorchScript.
    flops: int | None
    #: The quantization of its input, where its interface is quantized.
    interface: Interface | None


def prepare_network(source: Source, recipe: Recipe, say: Callable[[str], None]) -> PreparedNetwork:
    """Make the network by its recipe; nothing is written yet.

    Raises:
        VariantInvalid: the source does not yield a network.
    """
    if source.kind is not SourceKind.ZOO:
        return _prepare_users(source, recipe, say)
    shape = get_zoo_model(source.origin).input.shape
    say("making weights")
    net = _network(source)
    # Before fusion and quantization: packed weights do not count as parameters.
    parameters = sum(parameter.numel() for parameter in net.parameters())
    net.fuse_model(is_qat=False)
    batch = images(shape, CHECK_SAMPLES, seed=SEED + 1)
    expected = net(batch)
    flops = _flops(net, (batch[:1],))
    net = net.to(memory_format=_MEMORY_FORMAT[recipe.memory_format])
    interface = None
    if recipe.precision != Precision.FLOAT32:
        say("quantizing")
        net = _int8_core(net, _calibration_images(source))
    if recipe.precision == Precision.INT8_FULL:
        interface = _int8_full(net)
    batch = batch.contiguous(memory_format=_MEMORY_FORMAT[recipe.memory_format])
    first = batch[:1].clone()
    # Quantized after the copy: cloning a quantized tensor loses its memory format.
    first = first if interface is None else interface.quantized(first)
    return PreparedNetwork(
        net=net,
        samples=samples_of(batch if interface is None else interface.quantized(batch)),
        first=(first,),
        calibration=samples_of(_calibration_images(source)),
        expected=expected,
        inputs=(spec_of(first),),
        parameters=parameters,
        flops=flops,
        interface=interface,
    )


def _prepare_users(source: Source, recipe: Recipe, say: Callable[[str], None]) -> PreparedNetwork:
    say("loading the network")
    net, specs = load_network(source)
    samples = drawn_samples(specs, CHECK_SAMPLES, seed=SEED + 1)
    expected = torch.cat([output_row(net(*sample)) for sample in samples])
    if recipe.memory_format != "contiguous":
        net = net.to(memory_format=_MEMORY_FORMAT[recipe.memory_format])
        samples = tuple(tuple(_laid_out(each, recipe.memory_format) for each in sample) for sample in samples)
    return PreparedNetwork(
        net=net,
        samples=samples,
        first=tuple(each.clone() for each in samples[0]),
        calibration=drawn_samples(specs, CALIBRATION_SAMPLES, seed=SEED),
        expected=expected,
        inputs=specs,
        parameters=sum(parameter.numel() for parameter in net.parameters()),
        flops=None if isinstance(net, torch.jit.ScriptModule) else _flops(net, samples[0]),
        interface=None,
    )


def _laid_out(tensor: torch.Tensor, memory_format: str) -> torch.Tensor:
    return tensor.contiguous(memory_format=_MEMORY_FORMAT[memory_format]) if tensor.dim() == 4 else tensor


def _flops(net: nn.Module, sample: Sample) -> int:
    with FlopCounterMode(display=False) as counter:
        net(*sample)
    return int(counter.get_total_flops())
