"""A variant: one concrete file of a model, made by a recipe, with the files that it needs beside it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from farm.core.base.bounds import AtMost, Bytes, Cardinal, Dimension, Matches, Note, RelativePath, Word
from farm.core.base.ids import Digest, VariantId, digest_of
from farm.core.base.spec_errors import closest_name


class Precision(StrEnum):
    """Number formats of weights and interface that the farm knows; a recipe may have any other word."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    #: Quantized inside, float interface.
    INT8_CORE = "int8-core"
    #: Quantized inside, quantized interface.
    INT8_FULL = "int8-full"
    #: Made elsewhere, from an unknown source.
    UNSTATED = "unstated"


_PRECISION = r"[a-z0-9][a-z0-9._-]{0,31}"
#: A value of `Precision`, or a word for what another tool made, such as `w8a16`.
PrecisionWord = Annotated[str, Matches(_PRECISION)]


def is_precision(value: object) -> bool:
    """Return whether a matrix may have a value as precision, and so a file."""
    return isinstance(value, str) and re.fullmatch(_PRECISION, value) is not None


def precision_hint(word: str) -> str:
    """Return what to write instead of a word that is no precision."""
    if close := closest_name(word, Precision):
        return f"did you mean `{close}`?"
    known = ", ".join(Precision)
    return f"{known}, or a word of lower-case letters, digits, `.`, `_` and `-`, 32 at most"


def meant_precision(word: str) -> Precision | None:
    """Return the known precision that was probably meant by another word; None where there is none."""
    close = closest_name(word, Precision)
    # `bfloat16` is no slip.
    return Precision(close) if close not in (None, word) and close[0] == word[0] else None


class Format(StrEnum):
    """The file format of a variant."""

    #: A TorchScript archive (`torch.jit.save`).
    TORCHSCRIPT = "torchscript"
    #: A TorchScript archive with mobile bytecode, for the lite interpreter.
    LITE = "lite"
    #: The lite interpreter's mobile bytecode as a flatbuffer.
    FLATBUFFER = "flatbuffer"
    #: A flatbuffer of TensorFlow Lite, now LiteRT.
    TFLITE = "tflite"
    #: A protobuf of ONNX.
    ONNX = "onnx"
    #: ONNX Runtime's own flatbuffer.
    ORT = "ort"
    #: A program of ExecuTorch (`.pte`).
    EXECUTORCH = "executorch"
    #: A network of ncnn as text (`.param`), without its weights.
    NCNN = "ncnn"
    #: A shared library that TVM compiled, for one ABI.
    TVM = "tvm"
    #: A flatbuffer of MNN.
    MNN = "mnn"
    #: A language model of llama.cpp, with its vocabulary.
    GGUF = "gguf"
    #: A language model of LiteRT-LM: networks, tokenizer and metadata in one file.
    LITERTLM = "litertlm"


TORCH_FORMATS = (Format.TORCHSCRIPT, Format.LITE, Format.FLATBUFFER)

#: The size of a dimension that is not known, and the name of a free one that has none.
OPEN, UNNAMED = -1, "?"
MOST_INPUTS, MOST_DIMENSIONS = 64, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """One input or output of a model."""

    #: Empty where it has none, or none is known.
    name: Word = ""
    #: -1 where a size is not known.
    shape: tuple[Dimension, ...]
    dtype: Word
    #: For each dimension the name of what the file leaves free, such as `batch`; `?` where it has no name,
    #: empty where the size is fixed. Without an item where all are fixed, or nothing is known of it.
    free: tuple[Word, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether every size is known."""
        return all(size >= 0 for size in self.shape)


def input_spec(name: str, shape: Sequence[int], dtype: str | None, *, free: Sequence[str] = ()) -> TensorSpec:
    """Return an input as a file states it.

    Raises:
        ValueError: it is larger than a tensor can be, or of an unknown type.
    """
    called = f"its input {name[:100]}" if name else "an input"
    if dtype is None:
        raise ValueError(f"{called} has an unknown type")
    if len(shape) > MOST_DIMENSIONS or not all(OPEN <= size < 2**31 for size in shape):
        raise ValueError(f"{called} has no possible shape")
    is_free = any(free)
    return TensorSpec(name=name, shape=tuple(shape), dtype=dtype, free=tuple(free) if is_free else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The recipe of a variant: precision x format x memory format x target."""

    #: A word of the farm's (`float32`), or that with which the file was added (`w8a16`).
    precision: PrecisionWord
    format: Format
    memory_format: str = "contiguous"
    #: The target of the file; `cpu` runs anywhere.
    target: str = "cpu"


def precision_note(recipe: Recipe) -> str | None:
    """Return which known precision was probably meant by that of a file; None where there is none."""
    meant = meant_precision(recipe.precision)
    return meant and f"{recipe.precision} is a precision of its own; did you mean {meant}?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """The agreement of a variant's outputs with those of its float32 reference on the same inputs."""

    #: The number of inputs that were run through both.
    inputs: Cardinal
    #: Pearson's correlation over all output values, and the largest absolute difference of one.
    correlation: float
    max_difference: float
    #: Share of inputs for which both name the same best class.
    top1_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How machine code was tuned: by so many measured schedules, in a file of records that the farm keeps."""

    #: Schedules that were tried, those that failed among them.
    trials: Cardinal
    #: SHA-256 of the file of records, an artifact of the farm.
    records: Digest
    #: Of the file of records.
    size_bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantFile:
    """A file of a variant."""

    #: Beside the model on the device, such as `tokenizer.bin`; empty for the model itself.
    path: RelativePath
    digest: Digest
    size_bytes: Bytes


def files_digest(files: Sequence[VariantFile]) -> Digest:
    """Return the digest of a variant: a single file's own, else one over the paths and digests of all."""
    if len(files) == 1:
        return files[0].digest
    identity = sorted((file.path, file.digest) for file in files)
    return digest_of(json.dumps(identity, separators=(",", ":")).encode())


def model_file_name(format: Format) -> str:
    """Return the name of a model on the device where other files lie beside it."""
    return f"model.{format}"


NOT_READ = "the farm has not read the file"
#: What the file of tuning records is called, which has no path on a device.
RECORDS = "tuning records"
#: Each is a link that the phone makes before every run.
MOST_FILES = 64


class SlowPath(StrEnum):
    """How a file has its convolutions computed, where that is known to take many times as long as it need."""

    #: By ExecuTorch's portable kernels, which are a reference: no delegate took them.
    PORTABLE_KERNELS = "portable-kernels"
    #: With weights of 8 bits and less, and activations that are quantized in each run (LiteRT).
    DYNAMIC_RANGE = "dynamic-range"
    #: By QLinear operators of ONNX on signed activations, for which ONNX Runtime has no quick kernels on x86.
    SIGNED_ACTIVATIONS = "signed-activations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The metadata of a variant's files, registered with them."""

    model: str
    recipe: Recipe
    #: Of the file; of several, over all of them (`files_digest`).
    digest: Digest
    #: Of all files together.
    size_bytes: Bytes
    #: Where there are several: all of them, the model first. Empty where there is one.
    files: Annotated[tuple[VariantFile, ...], AtMost(MOST_FILES)] = ()
    #: Backends this very file can run on.
    backends: tuple[str, ...]
    #: The ABI of its machine code, which only a program of the same one can load; None without machine code.
    abi: Word | None = None
    tuning: Tuning | None = None
    #: As the file states them, with the sizes that were declared; else as they were declared.
    inputs: tuple[TensorSpec, ...]
    #: Why the file does not show its inputs; None where it does.
    inputs_unread: Note | None = NOT_READ
    #: Whether a torch file brings inputs of its own; None where nothing looked.
    bundled_inputs: bool | None = None
    #: Whether a torch file's weights are packed for XNNPACK, as torch's mobile optimizer leaves them; None
    #: where nothing looked, and where it does not apply, as to quantized ones.
    mobile_optimized: bool | None = None
    #: What the file shows of a way of computing that is known to be slow; None where it shows none.
    slow_path: SlowPath | None = None
    #: Weights: of the network that was built, else counted in the file; None where neither is known.
    parameters: Cardinal | None = None
    #: How many operators of each kind the file has, by the runtime's names; empty where it shows none.
    operators: Annotated[Mapping[Word, Cardinal], AtMost(256)] = field(default_factory=dict)
    #: Multiply-accumulates of one inference, counted in the file: those of convolutions and products of
    #: matrices. 1 MAC = 2 FLOP.
    macs: Cardinal | None = None
    #: Why they are not counted; None where they are.
    macs_uncounted: Note | None = NOT_READ
    #: Floating-point operations of one inference, 2 x MAC, counted on the float32 network that was built.
    flops: Cardinal | None = None
    #: None where it was not compared: float32, files made elsewhere, targets that this host cannot run.
    fidelity: Fidelity | None = None
    #: Name and version of what made the file, e.g. {"torch": "2.13.0"}.
    built_with: Mapping[str, str] = field(default_factory=dict)
    #: Digest over recipe, model, builder source and versions: equal means the file need not be built again.
    recipe_digest: Digest


def variant_files(manifest: Manifest) -> tuple[VariantFile, ...]:
    """Return all files of a variant, the model first."""
    alone = VariantFile(path="", digest=manifest.digest, size_bytes=manifest.size_bytes)
    return manifest.files or (alone,)


def kept_files(manifest: Manifest) -> tuple[VariantFile, ...]:
    """Return all files that the farm keeps of a variant: its own, and the records by which it was tuned."""
    tuning = manifest.tuning
    if tuning is None:
        return variant_files(manifest)
    records = VariantFile(path=RECORDS, digest=tuning.records, size_bytes=tuning.size_bytes)
    return (*variant_files(manifest), records)


#: How the name of a tokenizer's file begins: `tokenizer.bin`, `tokenizer.json`, `tokenizer.model`.
_TOKENIZER = "tokenizer"
TOKENIZER_HINT = (
    "add it with the model: `farm variant add FILE --file tokenizer.bin`; one of another name is given as"
    " `--file tokenizer.json=PATH`"
)


def find_tokenizer(manifest: Manifest) -> VariantFile | None:
    """Return the tokenizer among the files of a variant, or None."""
    return next((file for file in manifest.files if is_tokenizer(file.path)), None)


def is_tokenizer(path: str) -> bool:
    """Return whether a file beside a model is its tokenizer, by its name."""
    return path.startswith(_TOKENIZER)


#: A model, a backend, a memory format: what stands in matrices, labels and file names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAME_RULE = "letters, digits, `.`, `_` and `-`, 64 at most"


def is_name(word: str) -> bool:
    """Return whether a matrix could use a word as the name of a model."""
    return _NAME.fullmatch(word) is not None


def find_invalid_name(manifest: Manifest) -> str | None:
    """Return the first name of a manifest that no matrix could use; `NAME_RULE` gives the spelling."""
    recipe = manifest.recipe
    words = (manifest.model, recipe.memory_format, recipe.target, *manifest.backends)
    return next((word for word in words if not is_name(word)), None)


def variant_name(model: str, recipe: Recipe) -> str:
    """Return the name people use: `mobilenet_v2/float32/torchscript`, with non-default parts behind it."""
    extras = [
        part
        for part, default in ((recipe.memory_format, "contiguous"), (recipe.target, "cpu"))
        if part != default
    ]
    return "/".join([model, recipe.precision, recipe.format, *extras])


DIGEST_SHOWN, _LONGEST_MODEL = 8, 64


def named_by_digest(manifest: Manifest, digest: Digest | None = None) -> Manifest:
    """Return the manifest of a file under the name of its model and a digest: `net-30b87477`.

    A matrix takes the current file of a name; under this one, it takes the file itself.

    Args:
        manifest: of the file.
        digest: of what is measured with it; None for the file itself.
    """
    suffix = f"-{(digest or manifest.digest)[:DIGEST_SHOWN]}"
    if manifest.model.endswith(suffix):
        return manifest
    return replace(manifest, model=manifest.model[: _LONGEST_MODEL - len(suffix)] + suffix)


VARIANT_AXES = ("model", "precision", "format", "memory_format", "target")


BACKEND_AXIS = "backend"
#: The name of the axis of harnesses, where cells of a matrix have different ones.
HARNESS_AXIS = "harness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """GET /api/v1/variants."""

    #: Sent as a document of its own: unknown keys are refused, as in every document of `farm.wire`.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    variant_id: VariantId
    name: str
    manifest: Manifest
    created_at: datetime
    #: Who registered it; None of a farm before this was recorded, and of the farm itself.
    registered_by: str | None = None
    #: Since when the farm has one of its files no more.
    expired_at: datetime | None = None
    #: The file that new matrices ran under this name before it; its digest still names it.
    replaces: Digest | None = None
    #: The file that new matrices run under this name; None where it is this one.
    replaced_by: Digest | None = None
