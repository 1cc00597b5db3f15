"""The models, precisions and formats that can be built, known without importing torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from farm.core.errors import InvalidInput
from farm.core.variant import Format, Precision, Recipe, TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One model of torchvision that was built and run in every precision and format offered."""

    model: str
    input: TensorSpec


_IMAGE = TensorSpec(shape=(1, 3, 224, 224), dtype="float32")

CATALOGUE: tuple[Entry, ...] = tuple(
    Entry(model=model, input=_IMAGE)
    for model in (
        "mobilenet_v2",
        "mobilenet_v3_large",
        "resnet18",
        "resnet50",
        "shufflenet_v2_x0_5",
        "shufflenet_v2_x1_0",
    )
)

_Word = TypeVar("_Word", bound=StrEnum)


def get_entry(model: str) -> Entry:
    """The catalogue's entry for a model.

    Raises:
        InvalidInput: no such model can be built; the hint names the closest ones.
    """
    for entry in CATALOGUE:
        if entry.model == model:
            return entry
    raise _unknown("model", model, [entry.model for entry in CATALOGUE])


def recipes_of(precisions: Sequence[str], formats: Sequence[str]) -> list[Recipe]:
    """Every precision in every format, in the order given, each once.

    Raises:
        InvalidInput: a word is no precision or format, or there is none of one kind.
    """
    found_precisions = [_word("precision", text, Precision) for text in dict.fromkeys(precisions)]
    found_formats = [_word("format", text, Format) for text in dict.fromkeys(formats)]
    if not found_precisions or not found_formats:
        raise InvalidInput("nothing to build: give at least one precision and one format")
    return [
        Recipe(precision=precision, format=format)
        for precision in found_precisions
        for format in found_formats
    ]


def check_recipe(recipe: Recipe) -> None:
    """Refuse what the builder does not make.

    Raises:
        InvalidInput: another memory format or target than the default was asked for.
    """
    if recipe.memory_format != "contiguous":
        raise _unknown("memory format", recipe.memory_format, ["contiguous"])
    if recipe.target != "cpu":
        raise _unknown("target", recipe.target, ["cpu"])


def _word(kind: str, text: str, words: type[_Word]) -> _Word:
    try:
        return words(text)
    except ValueError as error:
        raise _unknown(kind, text, list(words)) from error


def _unknown(kind: str, text: str, known: Sequence[str]) -> InvalidInput:
    close = get_close_matches(text, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there is {', '.join(known)}"
    return InvalidInput(f"no {kind} {text!r} can be built", hint=hint)
