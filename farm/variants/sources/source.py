"""What a variant is built from, as people name it. Imports no torch and runs nothing of a source."""

import hashlib
import json
import re
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from farm.core.base.ids import Digest
from farm.core.errors import InvalidInput, VariantInvalid
from farm.core.models.builders import TORCH, runtime_of
from farm.core.models.declared_inputs import declared_input, input_text
from farm.core.models.onnx_file import is_onnx
from farm.core.models.variant import NAME_RULE, Precision, Recipe, TensorSpec, is_name
from farm.variants.model_zoo import get_zoo_model

_FACTORY = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_FILE_SUFFIXES = (".pt2", ".pt", ".pth", ".ts", ".onnx")
_INPUT_HINT = "give each input in the order in which the network takes them: --input 1x3x224x224:float32"
_QUANTIZED_TYPES = ("quint8",)
_READ_BYTES = 1 << 20


class SourceKind(StrEnum):
    """The kinds of sources."""

    #: A network of torchvision that the farm knows by name, with weights that the farm makes.
    ZOO = "network by name"
    #: `package.module:factory`: a function of the person's own that returns an `nn.Module`.
    FACTORY = "factory"
    #: An archive of `torch.export.save`.
    EXPORTED = "program of torch.export"
    #: An archive of `torch.jit.save`.
    TORCHSCRIPT = "TorchScript file"
    #: A protobuf of ONNX.
    ONNX = "ONNX file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the network of a variant comes from."""

    kind: SourceKind
    #: The network's name, `package.module:factory`, or the path of a file.
    origin: str
    #: The name of the network in the farm.
    model: str
    #: Weights, as `torch.save(net.state_dict())` writes them; empty where the source has its own.
    state_dict: str = ""
    #: As declared; empty where the source states them.
    inputs: tuple[TensorSpec, ...] = ()
    #: The folder in which modules of a factory are searched first; empty for other sources.
    folder: str = ""

    @property
    def is_reproducible(self) -> bool:
        """Return whether names and contents of files determine the network; a factory is any code."""
        return self.kind is not SourceKind.FACTORY


def zoo_source(model: str) -> Source:
    """Return the source of a network that the farm knows by name, with the farm's weights.

    Raises:
        InvalidInput: no such model can be built; the hint names the closest ones.
    """
    get_zoo_model(model)
    return Source(kind=SourceKind.ZOO, origin=model, model=model)


def parse_source(
    text: str,
    *,
    model: str | None = None,
    state_dict: Path | None = None,
    inputs: Sequence[str] = (),
    folder: Path,
) -> Source:
    """Return the source that a text names.

    Args:
        text: a network's name, `package.module:factory`, or the path of a `.pt2`, TorchScript or ONNX file.
        model: the name of the network in the farm; by default that of network, factory or file.
        state_dict: a file of weights for a factory or a network by name.
        inputs: as `declared_input` parses them, in the order in which the network takes them.
        folder: where modules of a factory are searched first.

    Raises:
        InvalidInput: there is no such source, or an argument does not go with it.
        VariantInvalid: a file is none of these, or cannot be read.
    """
    declared = tuple(map(declared_input, inputs))
    for spec in declared:
        if not spec.is_complete or spec.dtype in _QUANTIZED_TYPES:
            raise InvalidInput(f"a network cannot be run with the input {input_text(spec)}", hint=_INPUT_HINT)
    kind = _kind_of(text)
    _check_options(kind, text, state_dict, declared)
    name = model or _default_name(kind, text)
    if not is_name(name):
        raise InvalidInput(
            f"{name[:80]!r} is not a name of a network", hint=f"name it by --model: {NAME_RULE}"
        )
    path = str(Path(text).resolve()) if kind in _FILES else text
    return Source(
        kind=kind,
        origin=path,
        model=name,
        state_dict=str(_existing(state_dict).resolve()) if state_dict is not None else "",
        inputs=declared,
        folder=str(folder.resolve()) if kind is SourceKind.FACTORY else "",
    )


_FILES = (SourceKind.EXPORTED, SourceKind.TORCHSCRIPT, SourceKind.ONNX)


def check_source(source: Source, recipe: Recipe) -> None:
    """Refuse a recipe that cannot be built from a source.

    Raises:
        InvalidInput: the source and the recipe's runtime, precision or target do not go together.
    """
    runtime = runtime_of(recipe.format)
    if source.kind is SourceKind.ONNX and runtime != "onnxruntime":
        raise InvalidInput(
            f"a file for {runtime} cannot be built from an ONNX file",
            hint="--runtime onnxruntime builds from it; others need the network itself: a factory"
            " (package.module:factory) or a .pt2 of torch.export",
        )
    if source.kind is SourceKind.TORCHSCRIPT and runtime in ("executorch", "litert", "tvm"):
        raise InvalidInput(
            f"a file for {runtime} cannot be built from TorchScript, which torch.export does not take",
            hint="build it from the network's factory (package.module:factory), or from a .pt2:"
            " torch.export.save(torch.export.export(net, inputs), 'net.pt2')",
        )
    if source.kind is not SourceKind.ZOO and runtime == TORCH and recipe.precision != Precision.FLOAT32:
        raise InvalidInput(
            f"{recipe.precision} files of torch are built for networks by name only",
            hint="other runtimes quantize any network: --runtime onnxruntime,litert,executorch",
        )
    if source.kind not in (SourceKind.ZOO, SourceKind.FACTORY) and recipe.memory_format != "contiguous":
        raise InvalidInput(
            f"a {source.kind} has the memory format it was made with",
            hint="build from the network's factory: package.module:factory",
        )


def usual_runtimes(source: Source) -> tuple[str, ...]:
    """Return the runtimes for which a source is built where none is named; empty: torch."""
    return ("onnxruntime",) if source.kind is SourceKind.ONNX else ()


def source_digests(source: Source) -> dict[str, str]:
    """Return what determines the network: names, inputs, and digests of files.

    Raises:
        VariantInvalid: a file cannot be read.
    """
    stated = {"kind": source.kind.value, "inputs": " ".join(map(input_text, source.inputs))}
    stated["origin"] = file_digest(Path(source.origin)) if source.kind in _FILES else source.origin
    if source.state_dict:
        stated["state_dict"] = file_digest(Path(source.state_dict))
    return stated


def weights_text(source: Source, seed: int) -> str:
    """Return where the weights are from, as manifests state it."""
    if source.state_dict:
        return f"state dict {file_digest(Path(source.state_dict))[:12]}"
    match source.kind:
        case SourceKind.ZOO:
            return f"random, seed {seed}"
        case SourceKind.FACTORY:
            return f"of {source.origin}, seed {seed}"
        case _:
            article = "an" if source.kind is SourceKind.ONNX else "a"
            return f"of {article} {source.kind}, {file_digest(Path(source.origin))[:12]}"


def file_digest(path: Path) -> Digest:
    """Return the SHA-256 of a file.

    Raises:
        VariantInvalid: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return Digest(hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise VariantInvalid(f"{path}: cannot be read: {error.strerror}") from error


def source_json(source: Source) -> str:
    """Return a source as a document for the worker."""
    return json.dumps(asdict(source))


def source_of_json(text: str) -> Source:
    """Return the source of a document of `source_json`."""
    document = json.loads(text)
    inputs = tuple(
        TensorSpec(**{**each, "shape": tuple(each["shape"]), "free": tuple(each["free"])})
        for each in document.pop("inputs")
    )
    return Source(**{**document, "kind": SourceKind(document["kind"])}, inputs=inputs)


def _kind_of(text: str) -> SourceKind:
    path = Path(text)
    if path.is_file():
        return _kind_of_file(path)
    if _FACTORY.fullmatch(text):
        return SourceKind.FACTORY
    if path.suffix in _FILE_SUFFIXES or "/" in text:
        raise InvalidInput(
            f"there is no file {text!r}", hint="check the path; networks are named without one"
        )
    if ":" in text:
        raise InvalidInput(
            f"{text!r} names no factory", hint="write it as package.module:factory, without parentheses"
        )
    get_zoo_model(text)
    return SourceKind.ZOO


def _kind_of_file(path: Path) -> SourceKind:
    """Return the kind of a file by its content; its name is ignored."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return _kind_of_archive(path, archive.namelist())
        content = path.read_bytes()
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise VariantInvalid(f"{path}: cannot be read: {error}") from error
    if is_onnx(memoryview(content)):
        return SourceKind.ONNX
    raise VariantInvalid(
        f"{path}: nothing is built from such a file",
        hint="sources are TorchScript, .pt2 and ONNX files; `farm variant add FILE` registers others",
    )


def _kind_of_archive(path: Path, names: Sequence[str]) -> SourceKind:
    records = {name.partition("/")[2] for name in names}
    if any(name.rpartition("/")[2] == "archive_format" for name in names):
        return SourceKind.EXPORTED
    if "constants.pkl" in records and any(record.startswith("code/") for record in records):
        return SourceKind.TORCHSCRIPT
    raise VariantInvalid(
        f"{path}: nothing is built from weights alone",
        hint=f"name the network that they are of: farm variant build package.module:factory"
        f" --state-dict {path.name}",
    )


def _check_options(
    kind: SourceKind, text: str, state_dict: Path | None, inputs: Sequence[TensorSpec]
) -> None:
    if state_dict is not None and kind in _FILES:
        raise InvalidInput(
            f"{text} has its own weights: --state-dict is for a factory or a network by name",
            hint="build from package.module:factory, or leave --state-dict out",
        )
    if inputs and kind is SourceKind.ZOO:
        raise InvalidInput(
            f"the inputs of {text} are known: {input_text(get_zoo_model(text).input)}",
            hint="leave --input out; a factory, such as torchvision.models:resnet18, takes any",
        )
    if not inputs and kind in (SourceKind.FACTORY, SourceKind.TORCHSCRIPT):
        raise InvalidInput(f"nothing states the inputs of {text}", hint=_INPUT_HINT)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InvalidInput(f"there is no file {str(path)!r}", hint="--state-dict takes a file of torch.save")
    return path


def _default_name(kind: SourceKind, text: str) -> str:
    """Return a name as a matrix allows it: of a file the stem, of a factory what follows the colon."""
    name = Path(text).stem if kind in _FILES else text.rpartition(":")[2]
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip("._-")[:64]
