"""The matrix of a command: a file that is sent to the farm, or a number."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from farm.core.errors import InvalidInput
from farm.wire.documents.matrices.matrix import load_matrix, matrix_spec
from farm.wire.yaml_positions import line_of

T = TypeVar("T")


def send_file(
    file: Path,
    send: Callable[[Mapping[str, object]], T],
    *,
    check: Callable[..., object] = matrix_spec,
) -> T:
    """Validate a matrix locally, where its lines are known, then send it.

    Raises:
        InvalidInput: the file cannot be read, is not a matrix, or names something unknown to the farm.
    """
    text = _text(file)
    try:
        spec = load_matrix(text)
        check(spec, text=text)
    except InvalidInput as error:
        raise _located(error, str(file)) from error
    try:
        return send(spec)
    except InvalidInput as error:
        # The farm does not have the file: map the places of its error to lines here.
        raise _located(error, _with_lines(file, text, error)) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: not a text file (UTF-8)", hint="a matrix is written in YAML") from error
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}", hint="`examples/demo.yaml` is a matrix") from error


def _with_lines(file: Path, text: str, error: InvalidInput) -> str:
    """Return `my.yaml, line 12`, or the file alone if the error has no place."""
    numbers = {line_of(text, place) for place in error.places}
    lines = sorted(number for number in numbers if number is not None)
    if not lines:
        return str(file)
    return f"{file}, {'line' if len(lines) == 1 else 'lines'} {', '.join(map(str, lines))}"


def _located(error: InvalidInput, where: str) -> InvalidInput:
    return type(error)(f"{where}: {error.message}", hint=error.hint)
