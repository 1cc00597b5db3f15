"""Sizes of tensors in ONNX graphs that state those of their inputs and weights alone (onnx, Operators.md)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from math import prod

from farm.core.models.contents.onnx_nodes import OnnxNode, Shape

#: Operators whose output is as large as their first input.
_ELEMENTWISE_NAMES = """
Relu Clip Sigmoid HardSigmoid HardSwish LeakyRelu PRelu Elu Selu Tanh Mish Softplus Gelu Erf Exp Log Neg Abs
Sqrt Reciprocal Floor Ceil Round Identity Cast Dropout Softmax LogSoftmax BatchNormalization
InstanceNormalization LayerNormalization QuantizeLinear DequantizeLinear
"""
_ELEMENTWISE = frozenset(_ELEMENTWISE_NAMES.split())
#: Whatever is larger is the size of no dimension.
_LARGEST = 2**31
_SAME = ("SAME_UPPER", "SAME_LOWER")


def inferred_shapes(nodes: Iterable[OnnxNode], stated: Mapping[str, Shape]) -> dict[str, Shape]:
    """Return the sizes that are stated, and those that follow from them, as far as these operators go.

    Args:
        nodes: of one graph, in its order.
        stated: by the name of a tensor; -1 for a size that is free.
    """
    shapes = dict(stated)
    for node in nodes:
        if node.outputs and node.outputs[0] not in shapes:
            shape = _inferred(node, [shapes.get(name) for name in node.inputs])
            if shape is not None and all(size < _LARGEST for size in shape):
                shapes[node.outputs[0]] = shape
    return shapes


def _inferred(node: OnnxNode, operands: Sequence[Shape | None]) -> Shape | None:
    """Return the size of a node's first output; None where it does not follow from those of its inputs."""
    needed = operands[: _NEEDED.get(node.kind)]
    if node.kind in _ELEMENTWISE:
        return next(iter(operands), None)
    known = [shape for shape in needed if shape is not None and all(size >= 0 for size in shape)]
    rule = _RULES.get(node.kind)
    return rule(node, known) if rule is not None and known and len(known) == len(needed) else None


def _broadcast(_node: OnnxNode, operands: Sequence[Shape]) -> Shape | None:
    aligned = zip_longest(*(reversed(shape) for shape in operands), fillvalue=1)
    return tuple(0 if 0 in sizes else max(sizes) for sizes in aligned)[::-1]


def _convolved(node: OnnxNode, operands: Sequence[Shape]) -> Shape | None:
    image, weights = operands[:2]
    return None if len(weights) < 2 else _windowed(node, image, weights[0], weights[2:])


def _pooled(node: OnnxNode, operands: Sequence[Shape]) -> Shape | None:
    [image] = operands
    return None if len(image) < 2 else _windowed(node, image, image[1], _numbers(node, "kernel_shape", ()))


def _windowed(node: OnnxNode, image: Shape, channels: int, kernel: Sequence[int]) -> Shape | None:
    """Return the size of what a window that moves over an image gives."""
    axes = len(kernel)
    strides, dilations = (_numbers(node, name, (1,) * axes) for name in ("strides", "dilations"))
    pads, padding = _numbers(node, "pads", (0,) * 2 * axes), node.attributes.get("auto_pad")
    lengths = (len(image) - 2, len(strides), len(dilations), len(pads) // 2)
    if set(lengths) != {axes} or min((*strides, 1)) < 1 or _numbers(node, "ceil_mode", (0,)) != (0,):
        return None
    spans = [dilation * (size - 1) + 1 for dilation, size in zip(dilations, kernel, strict=True)]
    sizes = [
        -(-size // stride) if padding in _SAME else (size + before + behind - span) // stride + 1
        for size, stride, span, before, behind in zip(
            image[2:], strides, spans, pads[:axes], pads[axes:], strict=True
        )
    ]
    return (image[0], channels, *sizes) if min(sizes, default=0) > 0 else None


def _pooled_whole(_node: OnnxNode, operands: Sequence[Shape]) -> Shape | None:
    [image] = operands
    return (*image[:2], *(1 for _ in image[2:]))


def _flattened(node: OnnxNode, operands: Sequence[Shape]) -> Shape | None:
    [shape] = operands
    [axis] = _numbers(node, "axis", (1,))
    return prod(shape[:axis]), prod(shape[axis:])


def _gemm(node: OnnxNode, operands: Sequence[Shape]) -> Shape | None:
    left, right = operands[:2]
    if len(left) != 2 or len(right) != 2:
        return None
    is_transposed = [_numbers(node, name, (0,)) != (0,) for name in ("transA", "transB")]
    return left[is_transposed[0]], right[not is_transposed[1]]


def _matrix_product(node: OnnxNode, operands: Sequence[Shape]) -> Shape | None:
    left, right = operands
    batch = _broadcast(node, (left[:-2], right[:-2]))
    return None if batch is None or min(len(left), len(right)) < 2 else (*batch, left[-2], right[-1])


def _concatenated(node: OnnxNode, operands: Sequence[Shape]) -> Shape | None:
    [axis] = _numbers(node, "axis", (0,))
    first = operands[0]
    if len({len(shape) for shape in operands}) > 1 or not -len(first) <= axis < len(first):
        return None
    joined = list(first)
    joined[axis] = sum(shape[axis] for shape in operands)
    return tuple(joined)


def _transposed(node: OnnxNode, operands: Sequence[Shape]) -> Shape | None:
    [shape] = operands
    order = _numbers(node, "perm", tuple(reversed(range(len(shape)))))
    return tuple(shape[axis] for axis in order) if sorted(order) == list(range(len(shape))) else None


def _numbers(node: OnnxNode, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """Return an attribute of whole numbers; its default where the node has none."""
    values = node.attributes.get(name, default)
    return default if isinstance(values, str) else values


_RULES: Mapping[str, Callable[[OnnxNode, Sequence[Shape]], Shape | None]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Mean", "Sum"), _broadcast),
    "Conv": _convolved,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pooled),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _pooled_whole),
    "Flatten": _flattened,
    "Gemm": _gemm,
    "MatMul": _matrix_product,
    "Concat": _concatenated,
    "Transpose": _transposed,
}
#: How many inputs the size follows from, where that is not all of them.
_NEEDED = {"Conv": 2, "Gemm": 2}
