"""Manifests of model files that were built elsewhere: detected facts and facts from the owner."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from farm.blobs.model_file import check_model_file
from farm.blobs.torch_code import has_bundled_inputs, is_converted_for_nnapi
from farm.core.base.ids import Digest, digest_of
from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput, VariantInvalid
from farm.core.models.variant import (
    NAME_RULE,
    Format,
    Manifest,
    Precision,
    Recipe,
    TensorSpec,
    find_invalid_name,
)
from farm.harness.torch.speed_benchmark_torch import input_settings

if TYPE_CHECKING:
    from rich.console import Console

    from farm.client.farm_client import FarmClient
    from farm.wire.documents.matrices.matrices import VariantView

#: Backends that can run any file of a format. TorchScript and ExecuTorch compile the backend into the file,
#: so only the CPU is assumed.
BACKENDS_BY_FORMAT: dict[Format, tuple[str, ...]] = {
    Format.TORCHSCRIPT: ("cpu",),
    Format.LITE: ("cpu",),
    Format.FLATBUFFER: ("cpu",),
    Format.EXECUTORCH: ("cpu",),
    Format.TFLITE: ("cpu", "xnnpack", "gpu", "nnapi", "hexagon", "qnn", "npu", "external"),
    Format.ONNX: ("cpu", "xnnpack", "nnapi", "qnn", "acl", "webgpu"),
    Format.ORT: ("cpu", "xnnpack", "nnapi", "qnn", "acl", "webgpu"),
    Format.NCNN: ("cpu", "vulkan"),
    Format.MNN: ("cpu", "opencl", "nnapi", "opengl", "vulkan"),
}
_TORCH_FORMATS = (Format.TORCHSCRIPT, Format.LITE, Format.FLATBUFFER)

DTYPES = ("float32", "float16", "uint8", "int8", "quint8", "int16", "int32", "int64", "bool")
MEMORY_FORMATS = ("contiguous", "channels_last")
_INPUT = re.compile(r"(\d{1,9}(?:x\d{1,9}){0,15}):([a-z0-9]+)")
_INPUT_HINT = f"write it like 1x3x224x224:float32; types are {', '.join(DTYPES)}"
_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME = 64


def manifest_of_file(
    path: Path,
    *,
    model: str | None = None,
    precision: str = Precision.UNSTATED,
    backends: Sequence[str] = (),
    inputs: Sequence[str] = (),
    memory_format: str = "contiguous",
    target: str | None = None,
) -> Manifest:
    """Return the manifest of a file that was built elsewhere. Reads the whole file; needs no torch.

    Args:
        path: the file; its format is detected from its content.
        model: name of the network; default: the file name.
        precision: a value of `Precision`.
        backends: backends that can run this file; default: those of its format.
        inputs: like `1x3x224x224:float32`, in order.
        memory_format: `contiguous` or `channels_last`.
        target: what it was built for; default: `nnapi` for TorchScript converted for it, else `cpu`.

    Raises:
        VariantInvalid: the file is not a complete model of a supported format.
        InvalidInput: an argument is not valid.
    """
    specs = tuple(map(tensor_spec, inputs))
    stated = _check_choice("precision", precision, list(Precision))
    layout = _check_choice("memory format", memory_format, MEMORY_FORMATS)
    format = check_model_file(path)
    if not backends and target is None and is_converted_for_nnapi(path, format):
        target = "nnapi"
    supported = _backends(format, tuple(dict.fromkeys(backends)), target)
    recipe = Recipe(
        precision=Precision(stated),
        format=format,
        memory_format=layout,
        target=target or ("nnapi" if _is_converted(format, supported) else "cpu"),
    )
    name = model or model_name(path)
    digest = _digest(path)
    manifest = Manifest(
        model=name,
        recipe=recipe,
        digest=digest,
        size_bytes=path.stat().st_size,
        backends=supported,
        inputs=specs,
        recipe_digest=_recipe_digest(digest, name, recipe),
    )
    if (word := find_invalid_name(manifest)) is not None:
        raise InvalidInput(f"{word[:80]!r} is not a name", hint=NAME_RULE)
    return manifest


def add_variant(farm: "FarmClient", path: Path, manifest: Manifest, console: "Console") -> "VariantView":
    """Upload the file, with a progress bar on a terminal, and register it.

    Raises:
        Conflict: the farm has this file with this name but other backends or inputs.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(20), DownloadColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(path.name, total=manifest.size_bytes)
        farm.upload(path, manifest.digest, progress=lambda more_bytes: bar.advance(task, more_bytes))
    return farm.register_variant(manifest)


def missing_input_hint(path: Path, manifest: Manifest) -> str | None:
    """Return what a matrix must set because the file has no bundled input; None if it has one."""
    format = manifest.recipe.format
    if format not in _TORCH_FORMATS or has_bundled_inputs(path, format):
        return None
    settings = input_settings(manifest.inputs, manifest.recipe.memory_format)
    if settings is None:
        return "the file has no bundled input; describe its inputs with --input, or bundle one"
    words = ", ".join(f"{flag}: {json.dumps(value)}" for flag, value in settings.items())
    return f"the file has no bundled input; speed_benchmark_torch needs settings: {{{words}}}"


def model_name(path: Path) -> str:
    """Return the file name without suffix, with `_` for characters that a matrix does not allow.

    Raises:
        InvalidInput: no character is left.
    """
    name = _INVALID_IN_NAME.sub("_", path.stem).lstrip("._-")[:_MAX_NAME]
    if not name:
        raise InvalidInput(f"{path.name!r} gives no name for the model", hint="name it with --model NAME")
    return name


def tensor_spec(text: str) -> TensorSpec:
    """Parse an input: `1x3x224x224:float32`.

    Raises:
        InvalidInput: the text has another form.
    """
    match = _INPUT.fullmatch(text.strip())
    if match is None or match[2] not in DTYPES:
        raise InvalidInput(f"{text!r} is not an input", hint=_INPUT_HINT)
    return TensorSpec(shape=tuple(map(int, match[1].split("x"))), dtype=match[2])


def _backends(format: Format, requested: tuple[str, ...], target: str | None) -> tuple[str, ...]:
    if format not in _TORCH_FORMATS:
        return requested or BACKENDS_BY_FORMAT[format]
    backends = requested or (("nnapi",) if target == "nnapi" else BACKENDS_BY_FORMAT[format])
    is_mixed = "nnapi" in backends and backends != ("nnapi",)
    if is_mixed or (target is not None and (target == "nnapi") is not ("nnapi" in backends)):
        raise InvalidInput(
            f"a {format} file runs on nnapi only if it was converted for nnapi, and then on no other backend",
            hint="use --target nnapi for a converted file only, and --backend nnapi for no other file",
        )
    return backends


def _is_converted(format: Format, backends: tuple[str, ...]) -> bool:
    return format in _TORCH_FORMATS and backends == ("nnapi",)


def _check_choice(kind: str, text: str, choices: Sequence[str]) -> str:
    if text not in choices:
        raise InvalidInput(f"no {kind} {text!r}", hint=name_hint(text, choices))
    return text


def _digest(path: Path) -> Digest:
    try:
        with path.open("rb") as file:
            return Digest(hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise VariantInvalid(f"{path}: cannot be read: {error.strerror or error}") from error


def _recipe_digest(digest: Digest, model: str, recipe: Recipe) -> Digest:
    """Return a digest of the content and its description, as the recipe is unknown."""
    stated = {"content": digest, "model": model, "recipe": asdict(recipe)}
    return digest_of(json.dumps(stated, sort_keys=True).encode())
