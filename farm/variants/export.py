"""Conversion of a network into a file with one bundled input. Imports torch."""

import zipfile
from pathlib import Path
from typing import assert_never

import torch
from torch import nn
from torch.utils import bundled_inputs

from farm.core.errors import VariantInvalid
from farm.core.models.variant import Format, Recipe
from farm.variants.nnapi import convert_to_nnapi

#: Records that no loader needs and that depend on where torch is installed (pytorch, serialization.md).
_TELLTALE = (".debug_pkl", "/.data/serialization_id")


def save(net: nn.Module, image: torch.Tensor, recipe: Recipe, path: Path) -> None:
    """Write the network with `image` as its bundled input 0; an archive contains the file's stem.

    Raises:
        VariantInvalid: the network cannot be converted for the recipe's target.
    """
    module = convert_to_nnapi(net, image) if recipe.target == "nnapi" else _freeze(net)
    # bundle_inputs clones: augmenting in place breaks other modules of the same scripted class.
    bundled = bundled_inputs.bundle_inputs(module, [(bundled_inputs.bundle_large_tensor(image),)])
    match recipe.format:
        case Format.TORCHSCRIPT:
            bundled.save(str(_untraced_path(path)))
            _copy_without_traces(_untraced_path(path), path)
        case Format.LITE:
            bundled._save_for_lite_interpreter(str(_untraced_path(path)))
            _copy_without_traces(_untraced_path(path), path)
        case Format.FLATBUFFER:
            bundled._save_for_lite_interpreter(str(path), _use_flatbuffer=True)
        case Format.TFLITE | Format.ONNX | Format.ORT | Format.EXECUTORCH | Format.NCNN | Format.MNN:
            raise VariantInvalid(f"{recipe.format} cannot be built here")
        case _:
            assert_never(recipe.format)


def _freeze(net: nn.Module) -> torch.jit.ScriptModule:
    """Freeze the network: batch-norm is folded, and loading takes a tenth of the time.

    The mobile optimizer does more, but is not in any published build of torch for PCs.
    """
    return torch.jit.freeze(torch.jit.script(net))


def _untraced_path(path: Path) -> Path:
    return path.with_suffix(".whole")


def _copy_without_traces(draft: Path, path: Path) -> None:
    """Copy the archive without torch's folder names, so that a recipe always gives the same digest."""
    with zipfile.ZipFile(draft) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for record in source.infolist():
            if not record.filename.endswith(_TELLTALE):
                target.writestr(zipfile.ZipInfo(record.filename, record.date_time), source.read(record))
    draft.unlink()
