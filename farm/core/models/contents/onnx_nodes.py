"""Nodes of ONNX graphs, and their multiply-accumulates.

By Operators.md of onnx and ContribOperators.md of onnxruntime.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from farm.core.models.contents.counts import Uncountable, product

Shape = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxNode:
    """A node of a graph. Operands that are left out have an empty name."""

    kind: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    #: Those that are whole numbers, or lists of them; and texts.
    attributes: Mapping[str, tuple[int, ...] | str] = field(default_factory=dict)


#: Of ONNX, and of ONNX Runtime.
_STANDARD, _CONTRIBUTED = ("", "ai.onnx"), ("com.microsoft",)


def operator_name(node: OnnxNode) -> str:
    """Return the kind of a node, with its domain where that is not the standard one."""
    return node.kind if node.domain in _STANDARD else f"{node.domain}.{node.kind}"


_QUANTIZERS = ("QuantizeLinear", "DequantizeLinear")


def quantization_parameters(nodes: Iterable[OnnxNode]) -> frozenset[str]:
    """Return the names of the scales and zero points, which are no weights."""
    return frozenset(name for node in nodes if node.kind in _QUANTIZERS for name in node.inputs[1:])


#: Operators that multiply in another graph, in a loop, or by an equation.
_OPAQUE = frozenset(
    ("LSTM", "GRU", "RNN", "Einsum", "If", "Loop", "Scan", "DeformConv", "DFT", "STFT", "SequenceMap")
)
_ATTENTION = "Attention"
#: Operators of ONNX Runtime that multiply no matrices.
_PLAIN_NAMES = """
QuantizeLinear DequantizeLinear QLinearAdd QLinearMul QLinearAveragePool QLinearGlobalAveragePool
QLinearConcat QLinearSigmoid QLinearLeakyRelu QLinearSoftmax QLinearReduceMean QLinearWhere NhwcMaxPool
Gelu FastGelu QuickGelu BiasGelu BiasAdd BiasSoftmax BiasSplitGelu SkipLayerNormalization
SkipSimplifiedLayerNormalization EmbedLayerNormalization GroupNorm SkipGroupNorm RotaryEmbedding
"""
_PLAIN = frozenset(_PLAIN_NAMES.split())
_Rule = Literal["convolution", "transposed convolution", "product"]
#: For each operator how it multiplies, and which input is the filter or the second matrix.
_PRODUCTS: Mapping[str, tuple[_Rule, int]] = {
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger"), ("convolution", 1)),
    "QLinearConv": ("convolution", 3),
    "ConvTranspose": ("transposed convolution", 1),
    **dict.fromkeys(
        ("Gemm", "FusedGemm", "MatMul", "FusedMatMul", "MatMulInteger", "MatMulIntegerToFloat"),
        ("product", 1),
    ),
    "DynamicQuantizeMatMul": ("product", 1),
    **dict.fromkeys(("QGemm", "QLinearMatMul"), ("product", 3)),
}


def onnx_macs(nodes: Iterable[OnnxNode], shapes: Mapping[str, Shape]) -> Iterator[int]:
    """Yield the multiply-accumulates of each node that has some.

    Args:
        nodes: of one graph.
        shapes: by the name of a tensor; -1 for a size that is free.

    Raises:
        Uncountable: they are not in the file.
    """
    for node in nodes:
        if (found := _PRODUCTS.get(node.kind)) is not None and node.domain in _STANDARD + _CONTRIBUTED:
            yield _macs(node, *found, shapes)
        elif not _is_plain(node):
            raise Uncountable(f"what its operator {operator_name(node)} multiplies is not in the file")


def _is_plain(node: OnnxNode) -> bool:
    """Return whether an operator multiplies no matrices."""
    if node.domain in _STANDARD:
        return node.kind not in _OPAQUE and _ATTENTION not in node.kind
    return node.domain in _CONTRIBUTED and node.kind in _PLAIN


def _macs(node: OnnxNode, rule: _Rule, second: int, shapes: Mapping[str, Shape]) -> int:
    def shape(names: Sequence[str], index: int) -> Shape:
        name = names[index] if index < len(names) else ""
        if name not in shapes:
            raise Uncountable(f"the file does not state the size of {name or 'a tensor'} ({node.kind})")
        return shapes[name]

    weights = shape(node.inputs, second)
    if rule == "convolution":
        # A filter is channels out x channels in of its group x its size.
        return product(shape(node.outputs, 0)) * product(weights[1:])
    if rule == "transposed convolution":
        # A filter is channels in x channels out of its group x its size.
        return product(shape(node.inputs, 0)) * product(weights[1:])
    output = product(shape(node.outputs, 0))
    if len(weights) < 2:
        return output * product(weights)
    # Either matrix may be transposed.
    columns = product(shape(node.outputs, 0)[-1:])
    return output * (product(weights[-2:]) // columns) if columns else 0
