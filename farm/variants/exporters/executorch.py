"""Programs of ExecuTorch (`.pte`) for XNNPACK, portable kernels or Vulkan. Imports executorch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import get_lowered_submodules
from executorch.runtime import Runtime

from farm.core.models.variant import Precision, Recipe
from farm.variants.sources.samples import Interface, Sample


def write(net: Any, samples: Sequence[Sample], recipe: Recipe, path: Path) -> Interface | None:
    """Write the network for one sample; `samples` give the ranges of a quantized one."""
    if recipe.precision == Precision.INT8_CORE:
        net = _quantized(net, samples)
    lowered = to_edge_transform_and_lower(
        torch.export.export(net, samples[0]), partitioner=_partitioners(recipe.target)
    )
    if recipe.target == "vulkan" and not get_lowered_submodules(lowered.exported_program().graph_module):
        raise ValueError("Vulkan's backend took no operator of it")
    path.write_bytes(lowered.to_executorch().buffer)
    return None


def run(path: Path, samples: Sequence[Sample], interface: Interface | None) -> list[list[torch.Tensor]]:
    """Return the file's outputs for each sample."""
    method = Runtime.get().load_program(path).load_method("forward")
    return [
        [each.clone() for each in method.execute([tensor.contiguous() for tensor in sample])]
        for sample in samples
    ]


def check_loads(path: Path) -> None:
    """Load the program without what it delegates: the wheel has no backend for Vulkan."""
    if "forward" not in Runtime.get().load_program(path).method_names:
        raise ValueError("it has no method `forward`")


def _partitioners(target: str) -> list[Any]:
    match target:
        case "xnnpack":
            return [XnnpackPartitioner()]
        case "vulkan":
            from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

            return [VulkanPartitioner()]
        case _:
            return []


def _quantized(net: Any, samples: Sequence[Sample]) -> Any:
    """Return the network with quantization nodes for XNNPACK: weights by channel, activations by tensor."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(net, samples[0]).module(), quantizer)
    for sample in samples:
        prepared(*sample)
    return convert_pt2e(prepared)
