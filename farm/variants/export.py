"""Conversion of a network into a file with one bundled input, for the CPU or for NNAPI. Imports torch."""

import zipfile
from pathlib import Path
from typing import assert_never

import torch
from torch import nn
from torch.backends._nnapi import prepare
from torch.utils import _pytree, bundled_inputs
from torch.utils.mobile_optimizer import optimize_for_mobile

from farm.core.errors import VariantInvalid
from farm.core.models.builders import XNNPACK
from farm.core.models.variant import Format, Recipe
from farm.variants.sources.samples import Sample

#: The newest one of torch's older exporter, which keeps weights in the file and needs no package but onnx.
_OPSET = 17
#: Error of the first run without NNAPI, as on every PC.
NO_NNAPI_HERE = "Failed to load libneuralnetworks.so"
#: What the compiler of TorchScript raises for code that it does not take.
_NOT_SCRIPTED = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, LookupError, OSError)
#: Records that no loader needs and that depend on where torch is installed (pytorch, serialization.md).
_TELLTALE = (".debug_pkl", "/.data/serialization_id")


def save(net: nn.Module, sample: Sample, recipe: Recipe, path: Path) -> None:
    """Write the network with `sample` as its bundled input 0; an archive contains the file's stem.

    Raises:
        VariantInvalid: the network cannot be converted for the recipe's target.
    """
    if recipe.target == "nnapi":
        module = _convert_to_nnapi(net, sample)
    elif recipe.target == XNNPACK:
        module = optimize_for_mobile(scripted(net, sample))
    else:
        # Batch-norm is folded, and loading takes a tenth of the time.
        module = torch.jit.freeze(scripted(net, sample))
    # bundle_inputs clones: augmenting in place breaks other modules of the same scripted class.
    bundled = bundled_inputs.bundle_inputs(module, [tuple(map(bundled_inputs.bundle_large_tensor, sample))])
    match recipe.format:
        case Format.TORCHSCRIPT:
            bundled.save(str(_untraced_path(path)))
            _copy_without_traces(_untraced_path(path), path)
        case Format.LITE:
            bundled._save_for_lite_interpreter(str(_untraced_path(path)))
            _copy_without_traces(_untraced_path(path), path)
        case Format.FLATBUFFER:
            bundled._save_for_lite_interpreter(str(path), _use_flatbuffer=True)
        case (
            Format.TFLITE
            | Format.ONNX
            | Format.ORT
            | Format.EXECUTORCH
            | Format.NCNN
            | Format.TVM
            | Format.MNN
            | Format.GGUF
            | Format.LITERTLM
        ):
            raise VariantInvalid(f"{recipe.format} cannot be built here")
        case _:
            assert_never(recipe.format)


def scripted(net: nn.Module, sample: Sample) -> torch.jit.ScriptModule:
    """Return the network as TorchScript: compiled from its code, else as one run of it went.

    Raises:
        VariantInvalid: it can be neither compiled nor traced.
    """
    if isinstance(net, torch.jit.ScriptModule):
        return net
    try:
        return torch.jit.script(net)
    except _NOT_SCRIPTED:
        try:
            return traced(net, sample)
        except Exception as error:  # so does tracing
            raise VariantInvalid(
                f"torch can neither script nor trace this network: {_reason(error)}",
                hint="build it for a runtime that torch.export serves: --runtime executorch,litert",
            ) from error


def traced(net: nn.Module, sample: Sample) -> torch.jit.ScriptModule:
    """Return the network as one run of it went, or TorchScript as it is; raises what tracing raises."""
    return net if isinstance(net, torch.jit.ScriptModule) else torch.jit.trace(_still(net), sample)


def save_onnx(net: nn.Module, sample: Sample, path: Path) -> None:
    """Write the network as ONNX with `input` and `output`; of several, `input_0`, `input_1` and so on."""
    outputs = [leaf for leaf in _pytree.tree_leaves(net(*sample)) if isinstance(leaf, torch.Tensor)]
    torch.onnx.export(
        # Modules of torch.export refuse the switch to evaluation, which this exporter makes.
        traced(net, sample) if isinstance(net, torch.fx.GraphModule) else net,
        sample,
        str(path),
        dynamo=False,
        opset_version=_OPSET,
        input_names=_names("input", len(sample)),
        output_names=_names("output", len(outputs)),
    )


def _names(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}_{number}" for number in range(count)]


def _still(net: nn.Module) -> nn.Module:
    """Return a network that is marked for evaluation; modules of torch.export are, and refuse `eval()`."""
    for module in net.modules():
        module.training = False
    return net


def _convert_to_nnapi(net: nn.Module, inputs: Sample) -> torch.jit.ScriptModule:
    """Return the network as one NNAPI model, for inputs of exactly this shape and type.

    It computes in NHWC, the only layout that pooling and most drivers support; inputs in another layout are
    copied at each run.

    Raises:
        VariantInvalid: the converter does not know an operator of the network.
    """
    for module in list(net.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Dropout):
                setattr(module, name, nn.Identity())
    if len(inputs) != 1 or inputs[0].dim() != 4:
        raise VariantInvalid(
            "torch converts networks with one input of four dimensions to NNAPI",
            hint="build it for the target cpu",
        )
    sample = inputs[0].contiguous(memory_format=torch.channels_last)
    sample.nnapi_nhwc = True
    try:
        return prepare.convert_model_to_nnapi(torch.jit.trace(net, sample), sample)
    except Exception as error:  # the converter raises nothing more particular
        raise VariantInvalid(
            f"torch cannot convert this network to NNAPI: {_reason(error)}",
            hint="mobilenet_v2 and the resnets convert in every precision; or build it for the target cpu",
        ) from error


def _reason(error: Exception) -> str:
    """Return the converter's message without the graph's node and the traced file."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line.partition(" in node ")[0][:200]


def _untraced_path(path: Path) -> Path:
    return path.with_suffix(".whole")


def _copy_without_traces(draft: Path, path: Path) -> None:
    """Copy the archive without torch's folder names, so that a recipe always gives the same digest."""
    with zipfile.ZipFile(draft) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for record in source.infolist():
            if not record.filename.endswith(_TELLTALE):
                target.writestr(zipfile.ZipInfo(record.filename, record.date_time), source.read(record))
    draft.unlink()
