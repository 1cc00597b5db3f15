"""Networks of torchvision with realistic weights, and images to run them on. Imports torch."""

import torch
import torch.nn.functional
from torch import nn

from farm.variants.model_zoo import get_zoo_model
from farm.variants.recipe import SEED

# torchvision's published wheel is built for CUDA: beside a CPU torch its operators are missing, and importing
# it fails at "operator torchvision::nms does not exist" unless they are declared before.
_operators = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from torchvision.models import quantization  # noqa: E402

CALIBRATION_IMAGES = 16


def network(model: str) -> nn.Module:
    """Return a network in eval mode whose outputs depend on its inputs, the same on every call.

    Random weights with batch-norm's initial statistics shrink every signal to about 1e-10, and quantize to
    zeros: the statistics are taken from images, and the classifier is widened.
    """
    torch.manual_seed(SEED)
    net = getattr(quantization, model)(weights=None, quantize=False)
    _widen_classifier(net)
    _calibrate(net, images(get_zoo_model(model).input.shape, CALIBRATION_IMAGES, seed=SEED))
    return net.eval()


def images(shape: tuple[int, ...], count: int, *, seed: int) -> torch.Tensor:
    """Return `count` images of the shape, smooth and grainy, each with another contrast."""
    source = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, shape[1], 7, 7, generator=source)
    contrast = 0.25 + 1.5 * torch.rand(count, 1, 1, 1, generator=source)
    smooth = torch.nn.functional.interpolate(coarse, size=shape[2:], mode="bilinear", align_corners=False)
    grain = 0.3 * torch.randn(count, *shape[1:], generator=source)
    return (contrast * smooth + grain).contiguous()


def parameter_count(net: nn.Module) -> int:
    """Return the parameters before fusion and quantization: packed weights do not count as parameters."""
    return sum(parameter.numel() for parameter in net.parameters())


def fuse(net: nn.Module) -> nn.Module:
    """Return the network with convolution, batch-norm and activation in one module, changed in place."""
    net.fuse_model(is_qat=False)
    return net


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
