"""The models and recipes that can be built, listed without importing torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from farm.core.errors import InvalidInput
from farm.core.models.variant import BUILT_FORMATS, BUILT_PRECISIONS, Recipe, TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooModel:
    """One model of torchvision, tested in every precision and format offered."""

    model: str
    input: TensorSpec


_IMAGE = TensorSpec(shape=(1, 3, 224, 224), dtype="float32")

MODEL_ZOO: tuple[ZooModel, ...] = tuple(
    ZooModel(model=model, input=_IMAGE)
    for model in (
        "mobilenet_v2",
        "mobilenet_v3_large",
        "resnet18",
        "resnet50",
        "shufflenet_v2_x0_5",
        "shufflenet_v2_x1_0",
    )
)

MEMORY_FORMATS = ("contiguous", "channels_last")
TARGETS = ("cpu", "nnapi")
#: Stands for every word of a list.
ALL = "all"
#: NNAPI computes in NHWC: any other input is copied into it, within the harness's clock.
_OWN_MEMORY_FORMAT = {"cpu": "contiguous", "nnapi": "channels_last"}

_Word = TypeVar("_Word", bound=str)


def get_zoo_model(model: str) -> ZooModel:
    """Return the zoo's entry for a model.

    Raises:
        InvalidInput: no such model can be built; the hint names the closest ones.
    """
    for entry in MODEL_ZOO:
        if entry.model == model:
            return entry
    raise _unknown("model", model, [entry.model for entry in MODEL_ZOO])


def recipes_of(
    precisions: Sequence[str],
    formats: Sequence[str],
    *,
    memory_formats: Sequence[str] = (),
    targets: Sequence[str] = ("cpu",),
) -> list[Recipe]:
    """Return every combination, in the order given, each once; `all` stands for every word of its kind.

    Args:
        precisions: number formats.
        formats: layouts of the file.
        memory_formats: how inputs lie in memory; empty: the best one of each target.
        targets: backends of the files.

    Raises:
        InvalidInput: a word is unknown, or a kind has no word.
    """
    found_precisions = _words("precision", precisions, BUILT_PRECISIONS)
    found_formats = _words("format", formats, BUILT_FORMATS)
    found_memory_formats = _words("memory format", memory_formats, MEMORY_FORMATS)
    found_targets = _words("target", targets, TARGETS)
    if not found_precisions or not found_formats or not found_targets:
        raise InvalidInput("nothing to build: give at least one precision, one format and one target")
    return [
        Recipe(precision=precision, format=format, memory_format=memory_format, target=target)
        for precision in found_precisions
        for format in found_formats
        for target in found_targets
        for memory_format in found_memory_formats or [_OWN_MEMORY_FORMAT[target]]
    ]


def check_recipe(recipe: Recipe) -> None:
    """Refuse a recipe that the builder cannot make.

    Raises:
        InvalidInput: one of its words is for files made elsewhere.
    """
    _words("precision", [recipe.precision], BUILT_PRECISIONS)
    _words("format", [recipe.format], BUILT_FORMATS)
    _words("memory format", [recipe.memory_format], MEMORY_FORMATS)
    _words("target", [recipe.target], TARGETS)


def _words(kind: str, texts: Sequence[str], allowed: Sequence[_Word]) -> list[_Word]:
    if ALL in texts:
        return list(allowed)
    word_by_text = {str(word): word for word in allowed}
    for text in texts:
        if text not in word_by_text:
            raise _unknown(kind, text, list(word_by_text))
    return [word_by_text[text] for text in dict.fromkeys(texts)]


def _unknown(kind: str, text: str, allowed: Sequence[str]) -> InvalidInput:
    close = get_close_matches(text, allowed, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there is {', '.join(allowed)}"
    return InvalidInput(f"no {kind} {text!r} can be built", hint=hint)
