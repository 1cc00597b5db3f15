"""Matrices as their authors write them."""

from farm.core.matrices.matrix import MatrixSpec
from farm.wire.documents.matrices.matrix import load_matrix, matrix_spec


def matrix_from_text(text: str) -> MatrixSpec:
    """Read and check a matrix file."""
    return matrix_spec(load_matrix(text), text=text)
