"""The command line of a generic harness, from its definition."""

import shlex
from collections.abc import Iterator, Mapping
from string import Template

from farm.core.base.setting_values import SettingValue
from farm.core.programs.definition import BACKEND_PLACEHOLDER, MODEL_PLACEHOLDER, WORK_PLACEHOLDER, Definition


def argument_words(
    definition: Definition, *, backend: str, settings: Mapping[str, SettingValue]
) -> Iterator[str]:
    """Return the arguments of the program, in the placeholders of run plans.

    A flag that is missing in the settings has its default: they may be of another version's definition.
    """
    values = {name: settings.get(name, flag.default) for name, flag in definition.flags.items()}
    for word in definition.arguments:
        is_backends = word == f"${{{BACKEND_PLACEHOLDER}}}"
        for argument in definition.backends[backend].arguments if is_backends else (word,):
            yield from _fill(argument, definition, values)


def _fill(word: str, definition: Definition, values: Mapping[str, SettingValue]) -> list[str]:
    for name, flag in definition.flags.items():
        if flag.split and word == f"${{{name}}}":
            return [_literal(part) for part in _split(str(values[name]))]
    spelled = {name: _literal(_value_text(value)) for name, value in values.items()}
    spelled |= {MODEL_PLACEHOLDER: "${file_model}", WORK_PLACEHOLDER: "${work}"}
    return [Template.pattern.sub(lambda match: _replacement(match[0], spelled), word)]


def _replacement(placeholder: str, values: Mapping[str, str]) -> str:
    return "$$" if placeholder == "$$" else values[placeholder.strip("${}")]


def _split(text: str) -> list[str]:
    """Split words as a shell does; at blanks only where a quotation has no end."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _value_text(value: SettingValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _literal(text: str) -> str:
    """Escape the placeholders of a text for a run plan."""
    return text.replace("$", "$$")
