"""Inputs as people declare them, and what they add to those that a file states."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from farm.core.errors import InvalidInput
from farm.core.models.variant import MOST_DIMENSIONS, OPEN, UNNAMED, Manifest, TensorSpec, variant_name

DTYPES = (
    *("float32", "float16", "bfloat16", "float64", "uint8", "int8", "quint8", "uint16", "int16"),
    *("uint32", "int32", "uint64", "int64", "bool"),
)
_SIZE = r"(?:\d{1,9}|\?)"
_INPUT = re.compile(rf"(?:(.{{1,500}})=)?({_SIZE}(?:x{_SIZE}){{0,{MOST_DIMENSIONS - 1}}}|scalar):([a-z0-9]+)")
_SCALAR = "scalar"
_HINT = f"write it like 1x3x224x224:float32 or NAME=1x3x224x224:float32; types are {', '.join(DTYPES)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputProblem:
    """Why a file cannot run with the inputs that are known or declared."""

    reason: str
    hint: str


def unknown_inputs(tool: str, variant: Manifest) -> InputProblem:
    """Return that a tool has to be told inputs which nothing states, or not all of whose sizes are known."""
    name = variant_name(variant.model, variant.recipe)
    if variant.inputs:
        why = f"sizes are open in {_texts(variant.inputs)}"
        example = " ".join(f"--input {input_text(spec).replace('?', '1')}" for spec in variant.inputs)
    else:
        why, example = variant.inputs_unread or "it has none", "--input 1x3x224x224:float32"
    return InputProblem(
        reason=f"{tool} has to be told the inputs of {name}: {why}",
        hint=f"`farm variant set {name} {example}` declares them for the file, `inputs:` for one matrix",
    )


class InputsContradict(ValueError):
    """Inputs were declared that are not those of the file."""


def declared_input(text: str) -> TensorSpec:
    """Parse an input: `1x3x224x224:float32`, `tokens=1x?:int64`, `scalar:bool`.

    Raises:
        InvalidInput: the text has another form.
    """
    match = _INPUT.fullmatch(text.strip())
    if match is None or match[3] not in DTYPES:
        raise InvalidInput(f"{text[:200]!r} is not an input", hint=_HINT)
    words = [] if match[2] == _SCALAR else match[2].split("x")
    shape = tuple(OPEN if word == "?" else int(word) for word in words)
    return TensorSpec(name=match[1] or "", shape=shape, dtype=match[3])


def input_text(spec: TensorSpec) -> str:
    """Return an input as `declared_input` parses it."""
    name = f"{spec.name}=" if spec.name else ""
    return f"{name}{shape_text(spec)}:{spec.dtype}"


def shape_text(spec: TensorSpec) -> str:
    """Return `1x3x224x224`; `?` for a size that is not known."""
    return "x".join("?" if size < 0 else str(size) for size in spec.shape) or _SCALAR


def completed_inputs(stated: Sequence[TensorSpec], declared: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Return the inputs of a file with the sizes that were declared, in the order of the file.

    Declared ones that all have names are found by them, and may be some of the inputs; others are in its
    order.

    Args:
        stated: the inputs of the file; empty where it does not show them, and whatever is declared is right.
        declared: may leave sizes open.

    Raises:
        InputsContradict: the file has other inputs.
    """
    if not stated or not declared:
        return tuple(declared or stated)
    names = [spec.name for spec in stated]
    if len(set(names)) == len(names) and all(spec.name for spec in declared):
        by_name = {spec.name: spec for spec in declared}
        if unknown := by_name.keys() - set(names):
            raise InputsContradict(f"the file has no input {sorted(unknown)[0]}: it has {_texts(stated)}")
        pairs = [(spec, by_name.get(spec.name)) for spec in stated]
    else:
        if len(stated) != len(declared):
            raise InputsContradict(
                f"the file takes {len(stated)} inputs and {len(declared)} are declared:"
                f" it has {_texts(stated)}"
            )
        pairs = list(zip(stated, declared, strict=True))
    inputs = tuple(spec if other is None else _completed(spec, other) for spec, other in pairs)
    _check_symbols(inputs)
    return inputs


def with_declared(manifest: Manifest, declared: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Return the inputs of a file with declared ones; raises like `completed_inputs`."""
    return completed_inputs(manifest.inputs if manifest.inputs_unread is None else (), declared)


def is_same_input(one: TensorSpec, other: TensorSpec) -> bool:
    """Return whether two statements can be of one input: what both say is equal."""
    return (
        len(one.shape) == len(other.shape)
        and one.dtype == other.dtype
        and (not one.name or not other.name or one.name == other.name)
        and all(OPEN in sizes or sizes[0] == sizes[1] for sizes in zip(one.shape, other.shape, strict=True))
    )


def _completed(stated: TensorSpec, declared: TensorSpec) -> TensorSpec:
    symbols = stated.free or ("",) * len(stated.shape)
    of_file = (OPEN if symbol else size for size, symbol in zip(stated.shape, symbols, strict=True))
    if not is_same_input(replace(stated, shape=tuple(of_file)), declared):
        raise InputsContradict(f"the file takes {input_text(stated)}, not {input_text(declared)}")
    sizes = (
        size if other == OPEN else other for size, other in zip(stated.shape, declared.shape, strict=True)
    )
    return replace(stated, name=stated.name or declared.name, shape=tuple(sizes))


def _check_symbols(inputs: Sequence[TensorSpec]) -> None:
    """Refuse two sizes of one dimension, which the file has under one name."""
    size_by_symbol: dict[str, int] = {}
    for spec in inputs:
        for symbol, size in zip(spec.free, spec.shape, strict=False):
            if (
                symbol not in ("", UNNAMED)
                and size != OPEN
                and size_by_symbol.setdefault(symbol, size) != size
            ):
                raise InputsContradict(
                    f"the file has one size {symbol}, and {size_by_symbol[symbol]} and {size} are declared"
                )


def _texts(inputs: Sequence[TensorSpec]) -> str:
    return ", ".join(map(input_text, inputs))
