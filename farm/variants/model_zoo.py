"""The models and recipes that can be built, listed without importing torch."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from farm.core.errors import InvalidInput
from farm.core.models.builders import (
    BUILDERS,
    TORCH,
    TUNED,
    TUNED_BUILDERS,
    UNTUNED,
    Builder,
    is_tuned,
    runtime_of,
)
from farm.core.models.variant import Format, Recipe, TensorSpec


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

#: Stands for every word of a list.
ALL = "all"
#: Of a precision whose recipe is not said, the one that all runtimes with static int8 make.
_USUAL_PRECISION = {"int8": "int8-core"}

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
    formats: Sequence[str] = (),
    *,
    runtimes: Sequence[str] = (),
    memory_formats: Sequence[str] = (),
    targets: Sequence[str] = (),
    tuned: bool = False,
) -> list[Recipe]:
    """Return every combination that a builder makes, in the order given; `all` stands for every word.

    Args:
        precisions: number formats; `int8` is int8-core.
        formats: layouts of the file; empty: the first one of each runtime.
        runtimes: whose builders are meant; empty: those of the formats, else torch.
        memory_formats: how inputs lie in memory; empty: the best one of each target.
        targets: backends of the files; empty: the first one of each runtime.
        tuned: whether machine code is ordered by records of measured schedules.

    Raises:
        InvalidInput: a word is unknown, or no builder combines it with the others.
    """
    precisions = [_USUAL_PRECISION.get(word, word) for word in precisions]
    builders = _builders(runtimes, formats, tuned)
    if not tuned and (of_records := [target for target in targets if target.endswith(TUNED)]):
        raise InvalidInput(
            f"for {', '.join(of_records)}, nothing says how the loops are ordered",
            hint="`--tune TRIALS` measures schedules on this machine, `--records FILE` takes earlier ones",
        )
    found_precisions = _words(
        "precision",
        precisions,
        [word for each in builders for word in each.precisions],
        note="; ".join(f"{each.runtime}: {each.omission}" for each in builders if each.omission),
    )
    found_formats = _words("format", formats, [word for each in builders for word in each.formats])
    found_memory_formats = _words(
        "memory format", memory_formats, [word for each in builders for word in each.memory_formats]
    )
    found_targets = _words("target", targets, [each.target for each in builders])
    recipes = [
        recipe
        for precision in found_precisions
        for format in found_formats or _first_formats(builders)
        for builder in _for_targets(builders, found_targets)
        for memory_format in found_memory_formats or builder.memory_formats[:1]
        for recipe in [
            Recipe(precision=precision, format=format, memory_format=memory_format, target=builder.target)
        ]
        if builder.makes(recipe)
    ]
    if not recipes:
        raise InvalidInput("nothing to build: no builder combines these words", hint=_combinations(builders))
    _check_made("precision", precisions, {recipe.precision for recipe in recipes}, builders)
    _check_made("format", formats, {recipe.format for recipe in recipes}, builders)
    _check_made("memory format", memory_formats, {recipe.memory_format for recipe in recipes}, builders)
    _check_made("target", targets, {recipe.target for recipe in recipes}, builders)
    return recipes


def check_recipe(recipe: Recipe) -> None:
    """Refuse a recipe that no builder makes.

    Raises:
        InvalidInput: one of its words is for files made elsewhere.
    """
    recipes_of(
        [recipe.precision],
        [recipe.format],
        memory_formats=[recipe.memory_format],
        targets=[recipe.target],
        tuned=is_tuned(recipe),
    )


def _builders(runtimes: Sequence[str], formats: Sequence[str], tuned: bool) -> list[Builder]:
    """Return the builders of the runtimes, else those of the formats, else torch's.

    Raises:
        InvalidInput: a word is unknown, or `tuned` and nothing of theirs can be.
    """
    if runtimes:
        found = _words("runtime", runtimes, [builder.runtime for builder in BUILDERS])
    elif formats and ALL not in formats:
        every = [format for builder in BUILDERS for format in builder.formats]
        found = [runtime_of(format) for format in _words("format", formats, every)]
    else:
        found = [TORCH]
    if not tuned:
        return [builder for builder in BUILDERS if builder.runtime in found]
    if not any(builder.runtime in found for builder in TUNED_BUILDERS):
        raise InvalidInput(f"nothing of {', '.join(found)} can be tuned", hint="--runtime tvm")
    fixed = [each for each in BUILDERS if not each.target.endswith(UNTUNED)]
    return [builder for builder in (*fixed, *TUNED_BUILDERS) if builder.runtime in found]


def _first_formats(builders: Sequence[Builder]) -> list[Format]:
    return list(dict.fromkeys(builder.formats[0] for builder in builders))


def _for_targets(builders: Sequence[Builder], targets: Sequence[str]) -> list[Builder]:
    """Return the builders for the targets, in their order; without any, the first one of each runtime."""
    if not targets:
        return list({builder.runtime: builder for builder in reversed(builders)}.values())
    return sorted(
        (builder for builder in builders if builder.target in targets),
        key=lambda builder: targets.index(builder.target),
    )


def _check_made(kind: str, texts: Sequence[str], made: Container[str], builders: Sequence[Builder]) -> None:
    """Refuse a word of which nothing comes; `all` leaves out what cannot be combined."""
    for text in texts:
        if ALL not in texts and text not in made:
            raise InvalidInput(
                f"{kind} {text!r} cannot be built with the other words", hint=_combinations(builders)
            )


def _combinations(builders: Sequence[Builder]) -> str:
    """Return what builders make: `executorch for cpu (executorch: float32)`."""
    return ", ".join(
        f"{each.runtime} for {each.target} ({', '.join(each.formats)}: {', '.join(each.precisions)}"
        + (f"; {each.omission})" if each.omission else ")")
        for each in builders
    )


def _words(kind: str, texts: Sequence[str], allowed: Sequence[_Word], *, note: str = "") -> list[_Word]:
    if ALL in texts:
        return list(dict.fromkeys(allowed))
    word_by_text = {str(word): word for word in allowed}
    for text in texts:
        if text not in word_by_text:
            raise _unknown(kind, text, list(word_by_text), note=note)
    return [word_by_text[text] for text in dict.fromkeys(texts)]


#: The exporter in ExecuTorch's wheel wants the SDK of Qualcomm, which no package has: it downloads it when it
#: is imported.
_QNN = "qnn"
_QNN_HINT = (
    "export it where Qualcomm's SDK is installed, then `farm variant add net.pte --target qnn --backend qnn`:"
    " docs/variants.md"
)


def _unknown(kind: str, text: str, allowed: Sequence[str], *, note: str = "") -> InvalidInput:
    if _QNN in text.lower().split("-"):
        return InvalidInput(f"no {kind} {text!r} can be built: it needs Qualcomm's SDK", hint=_QNN_HINT)
    close = get_close_matches(text, allowed, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there is {', '.join(allowed)}"
    return InvalidInput(f"no {kind} {text!r} can be built", hint=f"{hint} ({note})" if note else hint)
