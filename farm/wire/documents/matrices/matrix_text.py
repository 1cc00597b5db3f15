"""A matrix file as text."""

from typing import Any

from farm.core.base.spec_errors import SpecProblem, matrix_invalid
from farm.wire.yaml_positions import MAX_TEXT_CHARS, YamlNotPlain, line_of, load_plain

__all__ = ["MAX_TEXT_CHARS", "line_of", "load_matrix"]


def load_matrix(text: str) -> dict[str, Any]:
    """Read a matrix as plain data.

    Raises:
        MatrixInvalid: it is none; tells line and column.
    """
    try:
        return load_plain(text, noun="matrix")
    except YamlNotPlain as error:
        raise matrix_invalid([SpecProblem(message=str(error), hint=error.hint)]) from error
