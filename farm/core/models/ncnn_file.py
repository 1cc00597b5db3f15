"""Telling a network of ncnn from its beginning."""

import re

#: The magic number, then how many layers and blobs there are (ncnn, param-and-model-file-structure).
_BEGINNING = re.compile(rb"7767517[ \t]*\r?\n\s*[0-9]{1,7}[ \t]+[0-9]{1,7}[ \t]*\r?\n")


def is_ncnn(head: bytes) -> bool:
    """Tell whether a file with this beginning is an ncnn network as text."""
    return _BEGINNING.match(head) is not None
