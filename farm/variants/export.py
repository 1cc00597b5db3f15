"""From a network to a file: scripted, frozen, one bundled input. Imports torch."""

from pathlib import Path
from typing import assert_never

import torch
from torch import nn
from torch.utils import bundled_inputs

from farm.core.variant import Format


def save(net: nn.Module, image: torch.Tensor, format: Format, path: Path) -> None:
    """Write the network with `image` as its bundled input 0; the archive carries the file's name inside.

    Frozen, because batch-norm is folded then and loading takes a tenth. The mobile optimizer does more, but
    is not in any published build of torch for PCs.
    """
    frozen = torch.jit.freeze(torch.jit.script(net))
    # bundle_inputs clones: augmenting in place breaks other modules of the same scripted class.
    module = bundled_inputs.bundle_inputs(frozen, [(bundled_inputs.bundle_large_tensor(image),)])
    match format:
        case Format.TORCHSCRIPT:
            module.save(str(path))
        case Format.LITE:
            module._save_for_lite_interpreter(str(path))
        case _:
            assert_never(format)
