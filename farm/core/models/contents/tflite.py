"""Operators, weights and multiply-accumulates of TensorFlow Lite's flatbuffers (tensorflow, schema.fbs)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from farm.core.models.contents.counts import (
    MOST_OPERATORS,
    FileContents,
    Uncountable,
    count_macs,
    count_operators,
    count_weights,
    few,
    product,
)
from farm.core.models.flatbuffer import I8, I32, U32, U64, MalformedTable, Table, root_table, table_at
from farm.core.models.variant import MOST_DIMENSIONS, SlowPath

_NAMES = """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP
FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX
SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD
UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX
DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER
GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL
NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT
LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE
RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2
ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND
HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY
SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D
IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL
BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD
UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR
RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM
STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION
STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE
STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR
STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH
STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE
STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL
STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE
STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT
STABLEHLO_CASE
"""
#: BuiltinOperator, in the order of its numbers.
BUILTIN_OPERATORS = tuple(_NAMES.split())
_CUSTOM = BUILTIN_OPERATORS.index("CUSTOM")
#: TensorType of weights: real numbers, and whole ones of 8 bits and less. Shapes and indices are wider; a
#: quantized bias is as wide, and has a scale.
_WEIGHT_TYPES = frozenset({0, 1, 3, 9, 10, 17, 18, 19})


#: Operators that multiply have a few tensors.
_MOST_OPERANDS = 16
#: The index of an operand that is left out.
_LEFT_OUT = -1


def tflite_contents(models: Iterable[memoryview]) -> FileContents:
    """Count the operators of all subgraphs, the constants that are weights, and the products of matrices.

    Args:
        models: those of one file, one after the other.

    Raises:
        ValueError: one cannot be read.
    """
    operators: list[str] = []
    shapes: list[tuple[int, ...]] = []
    graphs, tensors = 0, 0
    macs, macs_uncounted, has_dynamic_range = None, None, False
    for model in map(root_table, models):
        names = [_operator_name(table_at(model.content, place)) for place in few(model.items(1))]
        subgraphs = [table_at(model.content, place) for place in few(model.items(2))]
        graphs += len(subgraphs)
        # Lists may be shared, so that a small file has many of them.
        tensors += sum(len(subgraph.items(0)) for subgraph in subgraphs)
        if tensors > MOST_OPERATORS:
            raise MalformedTable(f"it has more than {MOST_OPERATORS} tensors")
        operators += islice(_operators(names, subgraphs), MOST_OPERATORS + 1)
        shapes += _weights(model, subgraphs)
        if len(subgraphs) == 1:
            macs, macs_uncounted = count_macs(_macs(names, subgraphs[0]))
            has_dynamic_range |= _has_dynamic_range(names, subgraphs[0])
    if graphs != 1:
        macs = None
        macs_uncounted = f"it has {graphs} graphs, and the file does not state which are run how often"
    return FileContents(
        parameters=count_weights(shapes),
        operators=count_operators(operators),
        macs=macs,
        macs_uncounted=macs_uncounted,
        slow_path=SlowPath.DYNAMIC_RANGE if has_dynamic_range else None,
    )


def _operator_name(code: Table) -> str:
    # Older files (2020) have the number in a field of one byte only.
    number = max(code.number(3, I32), code.number(0, I8))
    if number == _CUSTOM:
        return code.text(1) or "CUSTOM"
    return BUILTIN_OPERATORS[number] if 0 <= number < len(BUILTIN_OPERATORS) else f"BUILTIN_{number}"


def _operators(names: list[str], subgraphs: list[Table]) -> Iterator[str]:
    for subgraph in subgraphs:
        for place in subgraph.items(3):
            code = table_at(subgraph.content, place).number(0, U32)
            if code >= len(names):
                raise MalformedTable(f"there is no operator code {code}")
            yield names[code]


def _weights(model: Table, subgraphs: list[Table]) -> Iterator[tuple[int, ...]]:
    """Yield the shape of each constant that is a weight; tensors that share a buffer are one."""
    buffers, seen = model.items(4), set()
    for subgraph in subgraphs:
        for place in few(subgraph.items(0)):
            tensor = table_at(model.content, place)
            buffer = tensor.number(2, U32)
            if buffer in seen or not 0 < buffer < len(buffers) or not _is_weight(tensor):
                continue
            if _has_data(table_at(model.content, buffers[buffer])):
                seen.add(buffer)
                yield tensor.numbers(0, I32, MOST_DIMENSIONS)


def _is_weight(tensor: Table) -> bool:
    if tensor.number(1, I8) in _WEIGHT_TYPES:
        return True
    quantization = tensor.table(4)
    return quantization is not None and len(quantization.items(2)) > 0


def _has_data(buffer: Table) -> bool:
    # The data of large files stand behind the flatbuffer, or in a section of their own (LiteRT-LM).
    return len(buffer.items(0, 1)) > 0 or buffer.number(2, U64) > 1


#: Operators that multiply in another graph, in a loop, or as only the runtime knows.
_OPAQUE_NAMES = """
LSTM RNN SVDF UNIDIRECTIONAL_SEQUENCE_RNN UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN
BIDIRECTIONAL_SEQUENCE_LSTM CALL CALL_ONCE IF WHILE RFFT2D CUSTOM DELEGATE
"""
_OPAQUE = frozenset(_OPAQUE_NAMES.split())
_BUILTIN = frozenset(BUILTIN_OPERATORS)
_STABLEHLO = "STABLEHLO_"
_Shapes = Sequence[Sequence[int]]


def _by_output(inputs: _Shapes, output: Sequence[int]) -> int:
    """Count a convolution: each of its outputs takes as many as its filter has numbers."""
    return product(output) * product(inputs[1][1:])


def _by_depth(inputs: _Shapes, output: Sequence[int]) -> int:
    """Count a convolution whose filter is 1 x height x width x channels."""
    return product(output) * product(inputs[1][1:-1])


def _by_volume(inputs: _Shapes, output: Sequence[int]) -> int:
    """Count a convolution whose filter is depth x height x width x channels in x channels out."""
    return product(output) * product(inputs[1][:-1])


def _by_input(inputs: _Shapes, output: Sequence[int]) -> int:
    """Count a transposed convolution: each of its inputs takes one for each number of a channel's filter."""
    return product(inputs[2]) * product(inputs[1][:-1])


def _by_pairs(inputs: _Shapes, output: Sequence[int]) -> int:
    """Count a product of matrices, either of which may be transposed."""
    rows = output[-2] if len(output) > 1 else 1
    return product(output) * (product(inputs[0][-2:]) // rows) if rows else 0


_MACS: Mapping[str, Callable[[_Shapes, Sequence[int]], int]] = {
    "CONV_2D": _by_output,
    "DEPTHWISE_CONV_2D": _by_depth,
    "CONV_3D": _by_volume,
    "TRANSPOSE_CONV": _by_input,
    "CONV_3D_TRANSPOSE": _by_input,
    "FULLY_CONNECTED": _by_output,
    "BATCH_MATMUL": _by_pairs,
}
#: How many inputs it counts by, where these are not two.
_NEEDED = {"TRANSPOSE_CONV": 3, "CONV_3D_TRANSPOSE": 3}


def _macs(names: Sequence[str], graph: Table) -> Iterator[int]:
    """Yield the multiply-accumulates of each operator of a graph that has some.

    Raises:
        ValueError: they are not in the file.
    """
    tensors = few(graph.items(0))
    for place in few(graph.items(3)):
        operator = table_at(graph.content, place)
        name = names[operator.number(0, U32)]
        if name in _OPAQUE or name.startswith(_STABLEHLO) or name not in _BUILTIN:
            raise Uncountable(f"what its operator {name} multiplies is not in the file")
        if (count := _MACS.get(name)) is not None:
            sources, results = (operator.numbers(field, I32, _MOST_OPERANDS) for field in (1, 2))
            needed = _NEEDED.get(name, 2)
            inputs = [_shape(graph, tensors, index) for index in sources[:needed]]
            outputs = [_shape(graph, tensors, index) for index in results[:1]]
            if len(inputs) < needed or not inputs[1] or not any(outputs):
                raise Uncountable(f"the file does not state the sizes of an operator {name}")
            yield count(inputs, outputs[0])


#: Matrices of dynamic range have quick kernels, as language models need them; convolutions have not.
_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
#: TensorType.
_FLOAT32, _NARROW = 0, (9, 17)


def _has_dynamic_range(names: Sequence[str], graph: Table) -> bool:
    """Return whether a convolution takes float32, and has a filter of int8 or int4."""
    tensors = few(graph.items(0))
    for place in few(graph.items(3)):
        operator = table_at(graph.content, place)
        # Others may have more operands, and convolutions have few.
        if names[operator.number(0, U32)] not in _CONVOLUTIONS:
            continue
        sources = operator.numbers(1, I32, _MOST_OPERANDS)
        if len(sources) > 1:
            taken, weights = (_type(graph, tensors, index) for index in sources[:2])
            if taken == _FLOAT32 and weights in _NARROW:
                return True
    return False


def _type(graph: Table, tensors: range, index: int) -> int | None:
    """Return the number of a tensor's type; None of one that is left out.

    Raises:
        ValueError: there is no such tensor.
    """
    if index == _LEFT_OUT:
        return None
    if not 0 <= index < len(tensors):
        raise MalformedTable(f"there is no tensor {index}")
    return table_at(graph.content, tensors[index]).number(1, I8)


def _shape(graph: Table, tensors: range, index: int) -> tuple[int, ...]:
    """Return the shape of a tensor, with -1 where a size is free; empty for one that is left out."""
    if index == _LEFT_OUT:
        return ()
    if not 0 <= index < len(tensors):
        raise MalformedTable(f"there is no tensor {index}")
    tensor = table_at(graph.content, tensors[index])
    shape, signature = (tensor.numbers(field, I32, MOST_DIMENSIONS) for field in (0, 7))
    return signature if len(signature) == len(shape) else shape
