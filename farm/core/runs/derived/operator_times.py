"""The times of operators that a tool's profile has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from farm.core.runs.measurement import Better, Metric

#: Of a profile; the farm keeps up to a few MB of what a pass puts out.
MOST_PROFILE_BYTES = 16 * 1024 * 1024
LONGEST_OPERATOR = 60
#: Of those that took most time, and of those that are named in a proof.
_MOST_OPERATORS, _OPERATORS_SHOWN = 12, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """The time of all nodes of one operator in one inference."""

    operator: str
    #: How many nodes there are, or how often they are executed.
    count: int
    #: All of them together.
    ms: float


def printable_operator(text: str) -> str:
    """Return the name of an operator as a profile has it, as text that a page can show."""
    return "".join(letter for letter in text[:LONGEST_OPERATOR] if letter.isprintable())


def slowest_operators(operators: Iterable[OperatorTime]) -> list[OperatorTime]:
    """Return operators by the time that they took, the most first."""
    return sorted(operators, key=lambda each: (-each.ms, each.operator))


def operators_text(count_by_operator: Mapping[str, int]) -> str:
    """Return those that are there most often: `Conv x52, Add x10, Clip x7, ...`."""
    shown = sorted(count_by_operator.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{operator} x{count}" for operator, count in shown[:_OPERATORS_SHOWN]]
    return ", ".join([*words, "..."] if len(shown) > _OPERATORS_SHOWN else words)


def operator_metrics(operators: Iterable[OperatorTime]) -> list[Metric]:
    """Return the times of those operators that took most of it: `op Conv x52`."""
    slowest = slowest_operators(operators)[:_MOST_OPERATORS]
    ms_by_name = {f"op {each.operator} x{each.count}": each.ms for each in slowest}
    return [Metric(name=name, value=ms, unit="ms", better=Better.LOWER) for name, ms in ms_by_name.items()]
