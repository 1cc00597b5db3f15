"""Files made elsewhere as variants: what is told from the file, and what only its owner knows."""

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

#: What runtimes of a format can hand a file to that was not made for one of them in particular. TorchScript
#: and ExecuTorch bake the backend into the file, so nothing but the CPU is taken for granted.
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
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 64


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
    """The manifest of a file made elsewhere. Reads the whole file; needs neither torch nor a farm.

    Args:
        path: the file; its format is told from its content.
        model: name of the network; the file's own where nothing is said.
        precision: a word of `Precision`.
        backends: what this very file can run on; what its format can, where nothing is said.
        inputs: like `1x3x224x224:float32`, in order.
        memory_format: `contiguous` or `channels_last`.
        target: what it was made for; `nnapi` for TorchScript that was converted for it, otherwise `cpu`.

    Raises:
        VariantInvalid: the file is no whole model of a known format.
        InvalidInput: something said of it cannot be.
    """
    specs = tuple(map(tensor_spec, inputs))
    stated = _check_choice("precision", precision, list(Precision))
    layout = _check_choice("memory format", memory_format, MEMORY_FORMATS)
    format = check_model_file(path)
    if not backends and target is None and is_converted_for_nnapi(path, format):
        target = "nnapi"
    can = _backends(format, tuple(dict.fromkeys(backends)), target)
    recipe = Recipe(
        precision=Precision(stated),
        format=format,
        memory_format=layout,
        target=target or ("nnapi" if _is_converted(format, can) else "cpu"),
    )
    name = model or model_name(path)
    digest = _digest(path)
    manifest = Manifest(
        model=name,
        recipe=recipe,
        digest=digest,
        size_bytes=path.stat().st_size,
        backends=can,
        inputs=specs,
        recipe_digest=_recipe_digest(digest, name, recipe),
    )
    if (word := find_invalid_name(manifest)) is not None:
        raise InvalidInput(f"{word[:80]!r} is no name", hint=NAME_RULE)
    return manifest


def add_variant(farm: "FarmClient", path: Path, manifest: Manifest, console: "Console") -> "VariantView":
    """Upload the file, with a bar where somebody looks, and register it.

    Raises:
        Conflict: the farm has this file by this name, and it can run on other backends or takes other inputs.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(20), DownloadColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(path.name, total=manifest.size_bytes)
        farm.upload(path, manifest.digest, progress=lambda more_bytes: bar.advance(task, more_bytes))
    return farm.register_variant(manifest)


def missing_input_hint(path: Path, manifest: Manifest) -> str | None:
    """What a matrix must say because the file brings no input of its own; None where it need not."""
    format = manifest.recipe.format
    if format not in _TORCH_FORMATS or has_bundled_inputs(path, format):
        return None
    settings = input_settings(manifest.inputs, manifest.recipe.memory_format)
    if settings is None:
        return "the file has no bundled input; say its inputs with --input, or bundle one"
    words = ", ".join(f"{flag}: {json.dumps(value)}" for flag, value in settings.items())
    return f"the file has no bundled input; speed_benchmark_torch needs settings: {{{words}}}"


def model_name(path: Path) -> str:
    """A file's name without its suffix, with `_` for what cannot stand in a matrix.

    Raises:
        InvalidInput: nothing is left of it.
    """
    name = _NO_NAME.sub("_", path.stem).lstrip("._-")[:_LONGEST_NAME]
    if not name:
        raise InvalidInput(f"{path.name!r} gives no name for the model", hint="say one: --model NAME")
    return name


def tensor_spec(text: str) -> TensorSpec:
    """An input as people write it: `1x3x224x224:float32`.

    Raises:
        InvalidInput: it is written otherwise.
    """
    found = _INPUT.fullmatch(text.strip())
    if found is None or found[2] not in DTYPES:
        raise InvalidInput(f"{text!r} is no input", hint=_INPUT_HINT)
    return TensorSpec(shape=tuple(map(int, found[1].split("x"))), dtype=found[2])


def _backends(format: Format, said: tuple[str, ...], target: str | None) -> tuple[str, ...]:
    if format not in _TORCH_FORMATS:
        return said or BACKENDS_BY_FORMAT[format]
    can = said or (("nnapi",) if target == "nnapi" else BACKENDS_BY_FORMAT[format])
    mixed = "nnapi" in can and can != ("nnapi",)
    if mixed or (target is not None and (target == "nnapi") is not ("nnapi" in can)):
        raise InvalidInput(
            f"a {format} file runs on nnapi only after it was converted for it, and then on nothing else",
            hint="--target nnapi for a converted file, and neither that nor --backend nnapi for any other",
        )
    return can


def _is_converted(format: Format, backends: tuple[str, ...]) -> bool:
    return format in _TORCH_FORMATS and backends == ("nnapi",)


def _check_choice(kind: str, text: str, known: Sequence[str]) -> str:
    if text not in known:
        raise InvalidInput(f"no {kind} {text!r}", hint=name_hint(text, known))
    return text


def _digest(path: Path) -> Digest:
    try:
        with path.open("rb") as file:
            return Digest(hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise VariantInvalid(f"{path}: cannot be read: {error.strerror or error}") from error


def _recipe_digest(digest: Digest, model: str, recipe: Recipe) -> Digest:
    """Over the content and what was said of it: nothing else is known of how the file was made."""
    stated = {"content": digest, "model": model, "recipe": asdict(recipe)}
    return digest_of(json.dumps(stated, sort_keys=True).encode())
