"""The inputs of ncnn networks as text (ncnn, param-and-model-file-structure)."""

import re

from farm.core.models.variant import MOST_INPUTS, TensorSpec, input_spec

#: Parameters are numbered; those of `Input`: width, height, channels, and depth between the last two.
_WIDTH, _HEIGHT, _CHANNELS, _DEPTH = 0, 1, 2, 11
_NUMBER = re.compile(r"([0-9]{1,2})=([0-9]{1,9})")
#: The text of the largest networks is less than 1 MB.
_MOST_BYTES = 4 * 1024 * 1024


def ncnn_inputs(content: memoryview) -> tuple[TensorSpec, ...]:
    """Return the inputs, channels first, as its layers `Input` state them; images get a batch of one.

    Raises:
        ValueError: one states no shape, as of networks that pnnx made, or there is none.
    """
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it has {len(content)} bytes, a network as text has less")
    inputs: list[TensorSpec] = []
    for line in bytes(content).decode(errors="replace").splitlines()[2:]:
        if line.lstrip().startswith("Input"):
            words = line.split()
            if words[0] == "Input":
                inputs.append(_input(words))
            if len(inputs) > MOST_INPUTS:
                raise ValueError(f"it has more than {MOST_INPUTS} inputs")
    if not inputs:
        raise ValueError("it has no layer Input")
    return tuple(inputs)


def _input(words: list[str]) -> TensorSpec:
    """Return an input of the words: kind, name, 0 inputs, 1 output, name of that, parameters."""
    if len(words) < 5:
        raise ValueError(f"a layer Input has {len(words)} words")
    size_by_number = {int(match[1]): int(match[2]) for match in map(_NUMBER.fullmatch, words[5:]) if match}
    sizes = [size_by_number.get(number, 0) for number in (_CHANNELS, _DEPTH, _HEIGHT, _WIDTH)]
    shape = [size for size in sizes if size]
    if not shape:
        raise ValueError(f"its layer Input of {words[4][:100]} states no shape")
    return input_spec(words[4], [1, *shape] if len(shape) > 2 else shape, "float32")
