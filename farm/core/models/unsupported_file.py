"""Files that are no model and can be called by their names: what a download left, and what others make."""

import re
from dataclasses import dataclass

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
        (rb".{8}\{\s*\"|GGUF|ggml", _WEIGHTS),
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
