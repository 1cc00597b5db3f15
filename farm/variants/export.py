"""From a network to a file: scripted, frozen, one bundled input. Imports torch."""

import zipfile
from pathlib import Path
from typing import assert_never

import torch
from torch import nn
from torch.utils import bundled_inputs

from farm.core.variant import Format

#: Records that no loader needs and that depend on where torch is installed (pytorch, serialization.md).
_TELLTALE = (".debug_pkl", "/.data/serialization_id")


def save(net: nn.Module, image: torch.Tensor, format: Format, path: Path) -> None:
    """Write the network with `image` as its bundled input 0; the archive carries the file's stem inside.

    Frozen, because batch-norm is folded then and loading takes a tenth. The mobile optimizer does more, but
    is not in any published build of torch for PCs.
    """
    frozen = torch.jit.freeze(torch.jit.script(net))
    # bundle_inputs clones: augmenting in place breaks other modules of the same scripted class.
    module = bundled_inputs.bundle_inputs(frozen, [(bundled_inputs.bundle_large_tensor(image),)])
    whole = path.with_suffix(".whole")
    match format:
        case Format.TORCHSCRIPT:
            module.save(str(whole))
        case Format.LITE:
            module._save_for_lite_interpreter(str(whole))
        case _:
            assert_never(format)
    _copy_without_traces(whole, path)


def _copy_without_traces(whole: Path, path: Path) -> None:
    """Leave out where torch was installed: a recipe gives the same digest wherever sums come out the same."""
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for record in source.infolist():
            if not record.filename.endswith(_TELLTALE):
                target.writestr(zipfile.ZipInfo(record.filename, record.date_time), source.read(record))
    whole.unlink()
