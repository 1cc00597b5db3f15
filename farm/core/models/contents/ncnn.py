"""Operators of ncnn networks as text (ncnn, param-and-model-file-structure)."""

from farm.core.models.contents.counts import FileContents, count_operators

#: The text of the largest networks is less than 1 MB.
_MOST_BYTES = 4 * 1024 * 1024


def ncnn_contents(content: memoryview) -> FileContents:
    """Count the layers; their weights are in another file.

    Raises:
        ValueError: it is larger than the text of a network.
    """
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it has {len(content)} bytes, a network as text has less")
    lines = bytes(content).decode(errors="replace").splitlines()[2:]
    return FileContents(
        operators=count_operators(words[0] for line in lines if (words := line.split())),
        macs_uncounted="the file does not state the sizes of its tensors",
    )
