"""Submitting a matrix file, so that what is wrong in it is told with file and line."""

from pathlib import Path
from typing import TYPE_CHECKING

from farm.core.errors import FarmError, InvalidInput
from farm.wire.matrix import matrix_spec
from farm.wire.matrix_text import load_matrix
from farm.wire.views import MatrixView

if TYPE_CHECKING:
    from farm.client import FarmClient


def submit_file(farm: "FarmClient", file: Path) -> MatrixView:
    """Check a matrix here, where its lines are known, then enqueue it.

    Raises:
        InvalidInput: the file cannot be read, is no matrix, or names what the farm does not have.
    """
    text = _text(file)
    try:
        spec = load_matrix(text)
        matrix_spec(spec, text=text)
        return farm.submit_matrix(spec)
    except InvalidInput as error:
        raise _in_file(error, file) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: not a text file (UTF-8)", hint="a matrix is written in YAML") from error
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}", hint="`examples/demo.yaml` is a matrix") from error


def _in_file(error: FarmError, file: Path) -> FarmError:
    return type(error)(f"{file}: {error.message}", hint=error.hint)
