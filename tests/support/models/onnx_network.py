"""A small network of ONNX that a runtime can really run: convolutions with ReLU, written by hand."""

import numpy

from tests.support.models.onnx_samples import field, number

_FLOAT, _INTS = 1, 7
SIDE, CHANNELS = 32, 8


def convolutions(layers: int = 2) -> bytes:
    """Convolutions of 3x3 in a row, weights and all."""
    random = numpy.random.default_rng(20)
    parts, name = [], "x"
    for layer in range(layers):
        weights = random.normal(0, 0.1, (CHANNELS, CHANNELS, 3, 3)).astype("<f4")
        dims = b"".join(number(1, size) for size in weights.shape)
        parts.append(field(5, dims, number(2, _FLOAT), _text(8, f"w{layer}"), field(9, weights.tobytes())))
        pads = field(5, _text(1, "pads"), *(number(8, 1) for _ in range(4)), number(20, _INTS))
        parts.append(
            field(1, _text(1, name), _text(1, f"w{layer}"), _text(2, f"c{layer}"), _text(4, "Conv"), pads)
        )
        parts.append(field(1, _text(1, f"c{layer}"), _text(2, f"y{layer}"), _text(4, "Relu")))
        name = f"y{layer}"
    graph = field(7, *parts, _text(2, "graph"), _value(11, "x"), _value(12, name))
    return number(1, 8) + graph + field(8, _text(1, ""), number(2, 13))


def _text(place: int, text: str) -> bytes:
    return field(place, text.encode())


def _value(place: int, name: str) -> bytes:
    shape = b"".join(field(1, number(1, size)) for size in (1, CHANNELS, SIDE, SIDE))
    return field(place, _text(1, name), field(2, field(1, number(1, _FLOAT), field(2, shape))))
