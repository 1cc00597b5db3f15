"""Contradictions in a generic harness's definition, beyond the shape of its parts."""

from collections.abc import Iterator
from dataclasses import replace

from farm.core.base.spec_errors import SpecProblem, name_hint
from farm.core.models.variant import BACKEND_AXIS, VARIANT_AXES
from farm.core.programs.definition import (
    BACKEND_PLACEHOLDER,
    MODEL_PLACEHOLDER,
    RESERVED_PLACEHOLDERS,
    BackendDefinition,
    Definition,
    FlagDefinition,
    ValueLocator,
    placeholders,
    uses_placeholder,
)

ROOT = "definition"


def broken_rules(definition: Definition) -> Iterator[SpecProblem]:
    """Yield all problems, each with its place."""
    for problem in _broken_rules(definition):
        yield replace(problem, root=ROOT)


def _broken_rules(definition: Definition) -> Iterator[SpecProblem]:
    yield from _argument_problems(definition)
    yield from _model_problems(definition)
    for name, flag in definition.flags.items():
        yield from _flag_problems(name, flag, definition)
    for name, backend in definition.backends.items():
        yield from _backend_problems(name, backend)
    yield from _time_problems(definition)
    for name, metric in definition.metrics.items():
        yield from _place_problems(("metrics", name), metric.place)


def _words(definition: Definition) -> list[tuple[tuple[str | int, ...], str]]:
    """Return every word that may have placeholders, with its place."""
    own = [(("arguments",), word) for word in definition.arguments]
    of_backends = [
        (("backends", name, "arguments"), word)
        for name, backend in definition.backends.items()
        for word in backend.arguments
    ]
    return [*own, *of_backends]


def _argument_problems(definition: Definition) -> Iterator[SpecProblem]:
    for path, word in _words(definition):
        known = {*RESERVED_PLACEHOLDERS, *definition.flags} - (
            {BACKEND_PLACEHOLDER} if len(path) > 1 else set()
        )
        try:
            names = list(placeholders(word))
        except ValueError as error:
            yield SpecProblem(path=path, message=str(error))
            continue
        for name in names:
            if name not in known:
                message = f"nothing is called ${{{name}}}"
                yield SpecProblem(path=path, message=message, hint=name_hint(name, known))
            elif word != f"${{{name}}}" and _becomes_several_words(name, definition):
                message = f"${{{name}}} stands for any number of words: it cannot be a part of `{word}`"
                yield SpecProblem(path=path, message=message)
    has_arguments = any(backend.arguments for backend in definition.backends.values())
    if has_arguments and f"${{{BACKEND_PLACEHOLDER}}}" not in definition.arguments:
        message = "a backend has arguments, and none of these words is ${backend_arguments}"
        yield SpecProblem(path=("arguments",), message=message)


def _becomes_several_words(name: str, definition: Definition) -> bool:
    return name == BACKEND_PLACEHOLDER or (name in definition.flags and definition.flags[name].split)


def _model_problems(definition: Definition) -> Iterator[SpecProblem]:
    used = any(uses_placeholder(word, MODEL_PLACEHOLDER) for _, word in _words(definition))
    if used and not definition.needs_model:
        yield SpecProblem(path=("needs_model",), message="is false, and the arguments use ${model}")
    if definition.needs_model and not used:
        message = "is true, and no argument is ${model}: the program would not know its file"
        yield SpecProblem(path=("needs_model",), message=message)


def _flag_problems(name: str, flag: FlagDefinition, definition: Definition) -> Iterator[SpecProblem]:
    path = ("flags", name)
    if name in (*VARIANT_AXES, BACKEND_AXIS, *RESERVED_PLACEHOLDERS):
        yield SpecProblem(path=path, message=f"`{name}` is a word of matrices or definitions already")
    elif not any(uses_placeholder(word, name) for _, word in _words(definition)):
        hint = f"write ${{{name}}} where the program takes it"
        yield SpecProblem(path=path, message="no argument uses it", hint=hint)
    if flag.minimum is not None and isinstance(flag.default, str | bool):
        yield SpecProblem(path=(*path, "minimum"), message="only numbers have one")
    elif flag.minimum is not None and float(flag.default) < flag.minimum:
        yield SpecProblem(path=(*path, "minimum"), message=f"the default, {flag.default}, is less")
    if flag.split and not isinstance(flag.default, str):
        yield SpecProblem(path=(*path, "split"), message="only a text can be told apart into words")


def _backend_problems(name: str, backend: BackendDefinition) -> Iterator[SpecProblem]:
    path = ("backends", name)
    if not backend.accelerator:
        message, hint = "says no accelerator", "add `accelerator: cpu`, gpu, npu or dsp"
        yield SpecProblem(path=path, message=message, hint=hint)
    has_proof = backend.proof or backend.fallback or backend.declared
    if backend.accelerator == "cpu" and has_proof:
        message = "what runs on the CPU anyway needs no proof, and falls back to nothing"
        yield SpecProblem(path=path, message=message)


def _time_problems(definition: Definition) -> Iterator[SpecProblem]:
    if definition.samples and definition.value:
        message = "is one number for a whole run, and `samples` is there too: keep one of them"
        yield SpecProblem(path=("value",), message=message)
    if definition.samples:
        yield from _place_problems(("samples",), definition.samples.place)
    if definition.value:
        yield from _place_problems(("value",), definition.value.place)
    flag = definition.iterations_flag
    if flag is None:
        return
    if flag not in definition.flags or type(definition.flags[flag].default) is not int:
        message, hint = f"`{flag}` is no flag that takes a whole number", name_hint(flag, definition.flags)
        yield SpecProblem(path=("iterations_flag",), message=message, hint=hint)
    if definition.samples is None:
        yield SpecProblem(
            path=("iterations_flag",), message="says how many `samples` there are, and there are none"
        )


def _place_problems(path: tuple[str, ...], place: ValueLocator) -> Iterator[SpecProblem]:
    if bool(place.pattern) == bool(place.json):
        yield SpecProblem(path=path, message="needs either a `pattern` or a `json` path")
