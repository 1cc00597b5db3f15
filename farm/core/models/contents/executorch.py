"""Calls and multiply-accumulates of ExecuTorch's programs; fields as in its `program.fbs`."""

from collections.abc import Iterator, Sequence

from farm.core.models.contents.counts import (
    MOST_OPERATORS,
    FileContents,
    Uncountable,
    count_macs,
    count_operators,
    few,
    product,
)
from farm.core.models.flatbuffer import I8, I32, U8, U32, MalformedTable, Table, root_table, table_at
from farm.core.models.inputs.flatbuffers import TENSOR_VALUE, default_method
from farm.core.models.variant import MOST_DIMENSIONS, SlowPath

_KERNEL_CALL, _DELEGATE_CALL, _JUMP = 1, 2, 4
#: Half of them may move or release values.
_MOST_INSTRUCTIONS = 2 * MOST_OPERATORS


def executorch_contents(content: memoryview) -> FileContents:
    """Count the calls of kernels and delegates of the method that runners take by default, and its products.

    Weights are not counted: a delegate keeps its own where only it can read them.

    Raises:
        ValueError: it cannot be read.
    """
    methods = [table_at(content, place) for place in few(root_table(content).items(1))]
    if not methods:
        raise MalformedTable("it has no method")
    method = default_method(methods)
    macs, macs_uncounted = count_macs(_executorch_macs(method))
    operators = count_operators(name for _, name, _ in _calls(method))
    return FileContents(
        operators=operators,
        macs=macs,
        macs_uncounted=macs_uncounted,
        slow_path=SlowPath.PORTABLE_KERNELS if _CONVOLUTION in operators else None,
    )


def _calls(method: Table) -> Iterator[tuple[int, str, Table]]:
    """Yield the kind, the name and the table of each call."""
    content = method.content
    kernels = [_kernel_name(table_at(content, place)) for place in few(method.items(6))]
    delegates = [table_at(content, place).text(0) for place in few(method.items(7))]
    by_kind = {_KERNEL_CALL: kernels, _DELEGATE_CALL: delegates}
    for instruction in _instructions(method):
        kind = instruction.number(0, U8)
        called, call = by_kind.get(kind), instruction.table(1)
        # Moves, jumps and releases compute nothing.
        if called is None or call is None:
            continue
        if (index := call.number(0, U32)) >= len(called):
            raise MalformedTable(f"a call of operator {index}, there are {len(called)}")
        yield kind, called[index], call


def _instructions(method: Table) -> Iterator[Table]:
    chains = [table_at(method.content, chain).items(2) for chain in few(method.items(5))]
    # Chains may share one list.
    if sum(map(len, chains)) > _MOST_INSTRUCTIONS:
        raise MalformedTable(f"it has more than {_MOST_INSTRUCTIONS} instructions")
    for places in chains:
        for place in places:
            yield table_at(method.content, place)


def _kernel_name(operator: Table) -> str:
    name, overload = operator.text(0), operator.text(1)
    return f"{name}.{overload}" if overload else name


#: Kernels of products of matrices, and which argument is the first matrix, and which the result.
_PRODUCTS = {
    "aten::mm.out": (0, 2),
    "aten::bmm.out": (0, 2),
    "aten::addmm.out": (1, 5),
    "aten::linear.out": (0, 3),
}
_CONVOLUTION = "aten::convolution.out"
#: Kernels that multiply no matrices begin with one of these, and with none of the opaque ones.
_PLAIN = (
    "aten::",
    "dim_order_ops::",
    "executorch_prim::",
    "quantized_decomposed::quantize_",
    "quantized_decomposed::dequantize_",
    "quantized_decomposed::choose_qparams",
)
_OPAQUE = tuple(
    f"aten::{name}"
    for name in (
        *(
            "conv",
            "_conv",
            "lstm",
            "gru",
            "rnn",
            "matmul",
            "linear",
            "einsum",
            "tensordot",
            "dot",
            "mv",
            "addmv",
        ),
        *("baddbmm", "addbmm", "addr", "mm", "bmm", "addmm", "_scaled", "scaled_dot", "_flash", "_efficient"),
        *("_fft", "_cdist", "cdist", "_pdist", "_int_mm", "_weight_int"),
    )
)


def _executorch_macs(method: Table) -> Iterator[int]:
    if any(instruction.number(0, U8) == _JUMP for instruction in _instructions(method)):
        raise Uncountable("it has branches, and which of them run is not in the file")
    values = few(method.items(2))
    for kind, name, call in _calls(method):
        if kind == _DELEGATE_CALL:
            raise Uncountable(f"a part is inside of the delegate {name}, and only that can read it")
        arguments = call.numbers(1, I32, _MOST_ARGUMENTS)
        if name == _CONVOLUTION:
            yield _convolution(method, values, arguments)
        elif name in _PRODUCTS:
            first, result = (_size(method, values, arguments, place) for place in _PRODUCTS[name])
            yield product(result) * product(first[-1:])
        elif name.startswith(_OPAQUE) or not name.startswith(_PLAIN):
            raise Uncountable(f"what its kernel {name} multiplies is not known")


#: Kernels have a dozen.
_MOST_ARGUMENTS = 64
_BOOLEAN = 3
#: Of a convolution.
_INPUT, _WEIGHT, _TRANSPOSED, _RESULT = 0, 1, 6, 9


def _convolution(method: Table, values: range, arguments: Sequence[int]) -> int:
    transposed = _value(method, values, arguments, _TRANSPOSED)
    flag = transposed.table(1) if transposed.number(0, U8) == _BOOLEAN else None
    is_transposed = flag is not None and flag.number(0, U8) != 0
    steps = _size(method, values, arguments, _INPUT if is_transposed else _RESULT)
    return product(steps) * product(_size(method, values, arguments, _WEIGHT)[1:])


def _size(method: Table, values: range, arguments: Sequence[int], place: int) -> tuple[int, ...]:
    """Return the size of a tensor that is an argument."""
    value = _value(method, values, arguments, place)
    tensor = value.table(1)
    if value.number(0, U8) != TENSOR_VALUE or tensor is None:
        raise MalformedTable(f"argument {place} is no tensor")
    if tensor.number(8, I8) != 0:
        raise Uncountable("sizes are free")
    return tensor.numbers(2, I32, MOST_DIMENSIONS)


def _value(method: Table, values: range, arguments: Sequence[int], place: int) -> Table:
    if place >= len(arguments) or not 0 <= arguments[place] < len(values):
        raise MalformedTable(f"a call has no argument {place}")
    return table_at(method.content, values[arguments[place]])
