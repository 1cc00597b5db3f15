"""Networks of torchvision with realistic weights, quantized and prepared for export. Imports torch."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional
from torch import nn
from torch.ao import quantization as ao_quantization
from torch.utils.flop_counter import FlopCounterMode

from farm.core.models.variant import Precision, Recipe, TensorSpec
from farm.variants.model_zoo import get_zoo_model
from farm.variants.recipe import QCONFIG, SEED

# torchvision's published wheel is built for CUDA: beside a CPU torch its operators are missing, and importing
# it fails at "operator torchvision::nms does not exist" unless they are declared before.
_operators = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from torchvision.models import quantization  # noqa: E402

_CALIBRATION_IMAGES = 16
#: The bundled input is one of them, and depends on how many are drawn.
_CHECK_IMAGES = 6
_MEMORY_FORMAT = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def _network(model: str) -> nn.Module:
    """Return a network in eval mode whose outputs depend on its inputs, the same on every call.

    Random weights with batch-norm's initial statistics shrink every signal to about 1e-10, and quantize to
    zeros: the statistics are taken from images, and the classifier is widened.
    """
    torch.manual_seed(SEED)
    net = getattr(quantization, model)(weights=None, quantize=False)
    _widen_classifier(net)
    _calibrate(net, calibration_images(model))
    return net.eval()


def calibration_images(model: str) -> torch.Tensor:
    """Return the images that give the ranges of a quantized network."""
    return _images(get_zoo_model(model).input.shape, _CALIBRATION_IMAGES, seed=SEED)


def _images(shape: tuple[int, ...], count: int, *, seed: int) -> torch.Tensor:
    """Return `count` images of the shape, smooth and grainy, each with another contrast."""
    source = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, shape[1], 7, 7, generator=source)
    contrast = 0.25 + 1.5 * torch.rand(count, 1, 1, 1, generator=source)
    smooth = torch.nn.functional.interpolate(coarse, size=shape[2:], mode="bilinear", align_corners=False)
    grain = 0.3 * torch.randn(count, *shape[1:], generator=source)
    return (contrast * smooth + grain).contiguous()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The quantization of a network's input: real value = scale x (stored value - zero point)."""

    scale: float
    zero_point: int

    def quantized(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the batch as quint8, in its memory format."""
        return torch.quantize_per_tensor(batch, self.scale, self.zero_point, torch.quint8)


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
    interface: Interface | None


def prepare_network(model: str, recipe: Recipe, say: Callable[[str], None]) -> PreparedNetwork:
    """Make the network by its recipe; nothing is written yet."""
    shape = get_zoo_model(model).input.shape
    say("making weights")
    net = _network(model)
    # Before fusion and quantization: packed weights do not count as parameters.
    parameters = sum(parameter.numel() for parameter in net.parameters())
    net.fuse_model(is_qat=False)
    images = _images(shape, _CHECK_IMAGES, seed=SEED + 1)
    expected = net(images)
    flops = _flops(net, images[:1])
    net = net.to(memory_format=_MEMORY_FORMAT[recipe.memory_format])
    interface = None
    if recipe.precision != Precision.FLOAT32:
        say("quantizing")
        net = _int8_core(net, calibration_images(model))
    if recipe.precision == Precision.INT8_FULL:
        interface = _int8_full(net)
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
