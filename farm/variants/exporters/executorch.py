"""Programs of ExecuTorch (`.pte`), for XNNPACK or for its portable kernels. Imports executorch."""

from pathlib import Path
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
from torch import nn

from farm.core.models.variant import Precision, Recipe


def write(net: nn.Module, images: torch.Tensor, recipe: Recipe, path: Path) -> None:
    """Write the network for one image; `images` give the ranges of a quantized one."""
    sample = (images[:1],)
    if recipe.precision == Precision.INT8_CORE:
        net = _quantized(net, images)
    partitioners = [XnnpackPartitioner()] if recipe.target == "xnnpack" else []
    lowered = to_edge_transform_and_lower(torch.export.export(net, sample), partitioner=partitioners)
    path.write_bytes(lowered.to_executorch().buffer)


def run(path: Path, batch: torch.Tensor) -> torch.Tensor:
    """Return the file's output for each image of the batch."""
    method = Runtime.get().load_program(path).load_method("forward")
    return torch.cat([method.execute([image.contiguous()])[0].clone() for image in batch.split(1)])


def _quantized(net: nn.Module, images: torch.Tensor) -> Any:
    """Return the network with quantization nodes for XNNPACK: weights by channel, activations by tensor."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(net, (images[:1],)).module(), quantizer)
    for image in images.split(1):
        prepared(image)
    return convert_pt2e(prepared)
