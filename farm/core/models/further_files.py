"""Files that a model needs beside its own: weights of an ONNX model, the tokenizer of a language model."""

from collections import Counter
from collections.abc import Collection

from farm.core.base.ids import is_digest
from farm.core.errors import VariantInvalid
from farm.core.models.llm.executorch import is_language_model
from farm.core.models.onnx_file import external_files
from farm.core.models.variant import (
    TOKENIZER_HINT,
    Format,
    Manifest,
    files_digest,
    is_tokenizer,
    model_file_name,
)
from farm.core.runs.plan import folders_of, path_problem

#: What some adapters call the model, whatever its format.
_MODEL_NAMES = frozenset({"model.pte", "llm.mnn"})
_PATHS_HINT = "paths are like `net.onnx.data`; `--file NAME=PATH` gives a file a name"


def stated_files(content: memoryview, format: Format) -> tuple[str, ...]:
    """Return the paths beside the model at which a model file states that it keeps parts of itself.

    Raises:
        VariantInvalid: it cannot be read, or keeps some at a place that it does not state.
    """
    return external_files(content) if format is Format.ONNX else ()


def check_further_files(content: memoryview, format: Format, paths: Collection[str]) -> None:
    """Refuse a model whose further files are not given, or not possible.

    Raises:
        VariantInvalid: one is missing, or has a path that no device can have beside the model.
    """
    if (problem := _paths_problem(format, paths)) is not None:
        raise VariantInvalid(problem, hint=_PATHS_HINT)
    for path in stated_files(content, format):
        if path not in paths:
            raise VariantInvalid(
                f"it keeps weights in {path[:80]!r}, and no such file was given",
                hint=f"put it beside the model, or name it: `--file {path[:80]}=PATH`",
            )
    is_complete = format is not Format.EXECUTORCH or any(map(is_tokenizer, paths))
    if not is_complete and is_language_model(content):
        raise VariantInvalid("it is a language model, and no tokenizer was given", hint=TOKENIZER_HINT)


def _paths_problem(format: Format, paths: Collection[str]) -> str | None:
    """Return why files cannot lie beside a model by these paths; None where they can."""
    taken = {*_MODEL_NAMES, model_file_name(format)}
    folders = folders_of(paths)
    for path, count in Counter(paths).items():
        is_twice = count > 1 or path in taken or path in folders or path.partition("/")[0] in taken
        if why := "is there twice" if is_twice else path_problem(path):
            return f"a file beside it has the path {path[:80]!r}, which {why}"
    return None


def files_problem(manifest: Manifest) -> str | None:
    """Return why the files of a manifest contradict the rest of it; None where they do not."""
    files = manifest.files
    if not files:
        return None
    if [file.path for file in files].count("") != 1 or files[0].path or len(files) == 1:
        return "its first file is not the model, or its only one"
    if not all(is_digest(file.digest) for file in files):
        return "the digest of one of its files is none"
    if (problem := _paths_problem(manifest.recipe.format, [file.path for file in files[1:]])) is not None:
        return problem
    if sum(file.size_bytes for file in files) != manifest.size_bytes:
        return f"its files have not {manifest.size_bytes} bytes together"
    return None if files_digest(files) == manifest.digest else "its digest is not that of its files"
