"""Sending a matrix file to the farm, so that what is wrong in it is told with file and line."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from farm.core.errors import InvalidInput
from farm.wire.documents.matrices.matrices import MatrixView
from farm.wire.documents.matrices.matrix import matrix_spec
from farm.wire.documents.matrices.matrix_text import line_of, load_matrix

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient


T = TypeVar("T")


def submit_file(farm: "FarmClient", file: Path) -> MatrixView:
    """Enqueue a matrix file; raises like `send_file`."""
    return send_file(file, farm.submit_matrix)


def send_file(file: Path, send: Callable[[Mapping[str, object]], T]) -> T:
    """Check a matrix here, where its lines are known, then send it.

    Raises:
        InvalidInput: the file cannot be read, is no matrix, or names what the farm does not have.
    """
    text = _text(file)
    try:
        spec = load_matrix(text)
        matrix_spec(spec, text=text)
    except InvalidInput as error:
        raise _located(error, str(file)) from error
    try:
        return send(spec)
    except InvalidInput as error:
        # The farm was not sent the file: what it says of places is looked up in the lines here.
        raise _located(error, _with_lines(file, text, error)) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: not a text file (UTF-8)", hint="a matrix is written in YAML") from error
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}", hint="`examples/demo.yaml` is a matrix") from error


def _with_lines(file: Path, text: str, error: InvalidInput) -> str:
    """`my.yaml, line 12`, as far as the error knows a place."""
    found = {line_of(text, place) for place in error.places}
    lines = sorted(line for line in found if line is not None)
    if not lines:
        return str(file)
    return f"{file}, {'line' if len(lines) == 1 else 'lines'} {', '.join(map(str, lines))}"


def _located(error: InvalidInput, where: str) -> InvalidInput:
    return type(error)(f"{where}: {error.message}", hint=error.hint)
