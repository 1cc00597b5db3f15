"""The network of all model files: llama's architecture, its sizes, its vocabulary, and random weights.

The vocabulary is made up. Weights are drawn, not trained: times, memory and placement are real, what the
model writes is nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

EPSILON, SEED = 1e-5, 17


@dataclass(frozen=True)
class Sizes:
    """Sizes of a llama."""

    layers: int
    width: int
    inner: int
    heads: int
    heads_of_keys: int
    vocabulary: int

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield name and shape of each tensor, by the names that GGUF gives them."""
        keys = self.width // self.heads * self.heads_of_keys
        yield "token_embd", (self.vocabulary, self.width)
        for layer in range(self.layers):
            parts = {
                "attn_norm": (self.width,),
                "attn_q": (self.width, self.width),
                "attn_k": (keys, self.width),
                "attn_v": (keys, self.width),
                "attn_output": (self.width, self.width),
                "ffn_norm": (self.width,),
                "ffn_gate": (self.inner, self.width),
                "ffn_up": (self.inner, self.width),
                "ffn_down": (self.width, self.inner),
            }
            yield from ((f"blk.{layer}.{name}", shape) for name, shape in parts.items())
        yield "output_norm", (self.width,)
        yield "output", (self.vocabulary, self.width)


#: Of the example.
SIZES = Sizes(layers=6, width=512, inner=1536, heads=8, heads_of_keys=4, vocabulary=4096)
#: Of tests, which wait for it.
TINY = Sizes(layers=2, width=64, inner=128, heads=4, heads_of_keys=2, vocabulary=512)


def drawn(name: str, shape: tuple[int, ...]) -> Any:
    """Return the weights of a matrix in float32: the same in every file, whichever is written first."""
    draw = numpy.random.default_rng([SEED, *name.encode()])
    return draw.standard_normal(shape, dtype=numpy.float32) / numpy.sqrt(shape[1], dtype=numpy.float32)


def vocabulary(sizes: Sizes) -> list[str]:
    """Return three control tokens, one for each byte, and words without a meaning."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return tokens + [f"w{number}" for number in range(sizes.vocabulary - len(tokens))]


def write_files(
    words: Sequence[str],
    name: str,
    precisions: Sequence[str],
    write: Callable[[Path, str, Sizes], None],
    beside: Mapping[str, Callable[[Sizes], bytes]],
) -> None:
    """Write models, and what is beside them, as the words of a command line ask.

    Args:
        words: a folder, then precisions, of which none means all, and `--tiny`.
        name: of a model's file, with `{}` for its precision.
        precisions: all that there are.
        write: writes a model.
        beside: contents of the files that stand beside it, by name.
    """
    folder, sizes = Path(words[0]), TINY if "--tiny" in words else SIZES
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in beside.items():
        (folder / file).write_bytes(content(sizes))
    for precision in [word for word in words if word in precisions] or precisions:
        write(folder / name.format(precision), precision, sizes)
