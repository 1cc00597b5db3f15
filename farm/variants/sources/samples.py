"""Inputs that networks are quantized and compared with, and outputs as rows of numbers. Imports torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional
from torch.utils import _pytree

from farm.core.models.variant import TensorSpec

CALIBRATION_SAMPLES = 16
#: The bundled input is one of them, and depends on how many are drawn.
CHECK_SAMPLES = 6

#: The inputs of one inference, in the order in which the network takes them.
Sample = tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The quantization of a network's input: real value = scale x (stored value - zero point)."""

    scale: float
    zero_point: int
    dtype: str = "quint8"

    def quantized(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the batch as quint8, in its memory format."""
        return torch.quantize_per_tensor(batch, self.scale, self.zero_point, torch.quint8)


def images(shape: tuple[int, ...], count: int, *, seed: int) -> torch.Tensor:
    """Return `count` images of the shape, smooth and grainy, each with another contrast."""
    source = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, shape[1], 7, 7, generator=source)
    contrast = 0.25 + 1.5 * torch.rand(count, 1, 1, 1, generator=source)
    smooth = torch.nn.functional.interpolate(coarse, size=shape[2:], mode="bilinear", align_corners=False)
    grain = 0.3 * torch.randn(count, *shape[1:], generator=source)
    return (contrast * smooth + grain).contiguous()


def samples_of(batch: torch.Tensor) -> tuple[Sample, ...]:
    """Return a sample for each item of a batch."""
    return tuple((item,) for item in batch.split(1))


def drawn_samples(specs: Sequence[TensorSpec], count: int, *, seed: int) -> tuple[Sample, ...]:
    """Return `count` samples for inputs of any shape.

    Images for four dimensions of floats, normally distributed values for other floats, 0 and 1 for integers,
    which every table of embeddings has.
    """
    return tuple(
        tuple(_drawn(spec, seed=seed + 1000 * number + index) for index, spec in enumerate(specs))
        for number in range(count)
    )


def _drawn(spec: TensorSpec, *, seed: int) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, spec.dtype)
    source = torch.Generator().manual_seed(seed)
    if not dtype.is_floating_point:
        return torch.randint(0, 2, spec.shape, generator=source).to(dtype)
    if len(spec.shape) == 4:
        # Each image of a batch has another contrast, too.
        return images(spec.shape, spec.shape[0], seed=seed).to(dtype)
    return torch.randn(spec.shape, generator=source).to(dtype)


def output_row(output: Any) -> torch.Tensor:
    """Return all numbers of one inference's outputs, tensors in any nesting, as one row of real values.

    Raises:
        ValueError: there is no tensor in them.
    """
    leaves = [leaf for leaf in _pytree.tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)]
    if not leaves:
        raise ValueError("there is no tensor in its output")
    return torch.cat([_real(leaf).flatten().float() for leaf in leaves])[None]


def spec_of(tensor: torch.Tensor, name: str = "") -> TensorSpec:
    """Return the entry of an input in the manifest: `quint8` where it is quantized."""
    return TensorSpec(name=name, shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."))


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.dequantize() if tensor.is_quantized else tensor
