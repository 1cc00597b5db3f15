"""Telling from its content what kind of model file a file is, or what else: a download left, others make."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from farm.core.errors import VariantInvalid
from farm.core.models.flatbuffer import MalformedTable, root_table, text_at
from farm.core.models.variant import Format

_CHECKPOINT_HINT = (
    "this looks like a checkpoint of torch.save, which holds weights only:"
    " script the model and save that, torch.jit.script(model).save(path)"
)
_PT2_HINT = "convert it to what a runtime on phones reads: ExecuTorch's `.pte`, or ONNX"

#: File identifiers of flatbuffers stand at bytes 4 to 8; ExecuTorch counts its own up: ET12.
_FORMAT_BY_IDENTIFIER = {b"PTMF": Format.FLATBUFFER, b"TFL3": Format.TFLITE, b"ORTM": Format.ORT}
_EXECUTORCH_IDENTIFIER = re.compile(rb"ET\d\d")


def flatbuffer_format(content: memoryview) -> Format | None:
    """Return the format of a flatbuffer model; None for an unknown identifier.

    Raises:
        VariantInvalid: the identifier is known, and its root table lies outside of the file.
    """
    identifier = bytes(content[4:8])
    if _EXECUTORCH_IDENTIFIER.fullmatch(identifier):
        file_format = Format.EXECUTORCH
    elif identifier in _FORMAT_BY_IDENTIFIER:
        file_format = _FORMAT_BY_IDENTIFIER[identifier]
    else:
        return None
    if not _has_root_table(content):
        raise VariantInvalid(
            f"not a whole model file: it starts as {file_format}, and {len(content)} bytes are not all of it",
            hint="it was cut short or damaged on its way: copy it again",
        )
    return file_format


def _has_root_table(content: memoryview) -> bool:
    try:
        root_table(content)
    except MalformedTable:
        return False
    return True


def archive_format(names: Collection[str]) -> Format:
    """Return the format of an archive by the names of its records.

    All records lie under one folder named after the file as it was saved. TorchScript has `code/` and
    `constants.pkl`; `bytecode.pkl` is what the lite interpreter reads (pytorch, serialization.md).

    Raises:
        VariantInvalid: the records are not those of a TorchScript archive.
    """
    if any(name.rpartition("/")[2] == "archive_format" for name in names):
        raise VariantInvalid("not a model file for phones: it is a program of torch.export", hint=_PT2_HINT)
    records = {name.partition("/")[2] for name in names}
    has_code = any(record.startswith("code/") for record in records)
    if "data.pkl" not in records:
        raise VariantInvalid(
            "not a model file: it is a zip archive of something else, without a record data.pkl",
            hint="if the model is in it, unpack it first: `unzip FILE`",
        )
    if not has_code or "constants.pkl" not in records:
        raise VariantInvalid(
            "not a model file: the archive has data.pkl but no code/ and constants.pkl",
            hint=_CHECKPOINT_HINT,
        )
    return Format.LITE if "bytecode.pkl" in records else Format.TORCHSCRIPT


_OPERATORS, _TENSOR_NAMES = 3, 7
#: Of a table of twice as many fields as `Net` has.
_MOST_VTABLE_BYTES = 52


def is_mnn(content: memoryview) -> bool:
    """Tell whether the content is a complete MNN model: a flatbuffer without an identifier.

    Of the root table `Net` (MNN.fbs) two fields are inspected, a model without which cannot be: the list of
    operators, and the names of tensors, which must be texts.
    """
    try:
        net = root_table(content)
        if net.vtable_bytes > _MOST_VTABLE_BYTES:
            return False
        operators, names = net.items(_OPERATORS), net.items(_TENSOR_NAMES)
        return bool(operators and names) and text_at(content, names[0]).isascii()
    except MalformedTable:
        return False


#: The magic number, then how many layers and blobs there are (ncnn, param-and-model-file-structure).
_BEGINNING = re.compile(rb"7767517[ \t]*\r?\n\s*[0-9]{1,7}[ \t]+[0-9]{1,7}[ \t]*\r?\n")


def is_ncnn(head: bytes) -> bool:
    """Tell whether a file with this beginning is an ncnn network as text."""
    return _BEGINNING.match(head) is not None


#: As much of a file's beginning as any sign needs: a tar archive is known by byte 257.
HEAD_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedFile:
    """The actual kind of a file that is no model, and a hint, possibly empty."""

    what: str
    hint: str


_CHECKPOINT = UnsupportedFile(
    what="a pickle, such as a checkpoint of torch.save",
    hint="it holds weights only: script the model and save that, torch.jit.script(model).save(path)",
)
_WEIGHTS = UnsupportedFile(
    what="a file of weights without the network",
    hint="export the whole model: TorchScript, ONNX, TensorFlow Lite or ExecuTorch",
)
_PACKED = UnsupportedFile(
    what="a packed archive", hint="unpack it first, and add the model file that is in it"
)
_WEB_PAGE = UnsupportedFile(
    what="a web page: the download gave a page instead of the file",
    hint="open the address in a browser, and download the file itself",
)
_LFS_POINTER = UnsupportedFile(
    what="a Git LFS pointer: the download left the file itself out",
    hint="`git lfs pull` in that repository fetches it",
)
_NCNN = UnsupportedFile(
    what="a network of ncnn in binary (.param.bin)",
    hint="benchncnn reads the text form: add the .param that `ncnn2mem` made it from",
)
_PROGRAM = UnsupportedFile(
    what="a program (ELF), not a model", hint="`farm harness add NAME --abi ABI PATH` registers programs"
)
_KERAS = UnsupportedFile(
    what="an HDF5 file, such as a Keras model", hint="convert it to TensorFlow Lite first"
)

_PATTERNS: tuple[tuple[re.Pattern[bytes], UnsupportedFile], ...] = tuple(
    (re.compile(pattern, re.DOTALL), file)
    for pattern, file in (
        (rb"(?i:(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)?<(!doctype\s+html|html|head)\b)", _WEB_PAGE),
        (rb"version https://git-lfs\.github\.com/spec/", _LFS_POINTER),
        (rb"\xdd\x85\x76\x00", _NCNN),
        (rb"\x7fELF", _PROGRAM),
        (rb"\x1f\x8b|BZh[1-9]|\xfd7zXZ\x00|7z\xbc\xaf|Rar!|\x28\xb5\x2f\xfd|.{257}ustar", _PACKED),
        # A protocol-2 pickle; the first value of an old torch.save is a magic number of ten bytes.
        (rb"\x80[\x02-\x05]", _CHECKPOINT),
        (rb".{8}\{\s*\"|ggml", _WEIGHTS),
        (rb"\x89HDF\r\n", _KERAS),
    )
)
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+")


def find_unsupported_file(head: bytes) -> UnsupportedFile | None:
    """Recognize the kind of a file by its beginning; None where it is unknown."""
    return next((file for pattern, file in _PATTERNS if pattern.match(head)), None)


def looks_like_text(head: bytes) -> bool:
    """Tell whether a person could read it."""
    return _TEXT.fullmatch(head) is not None
