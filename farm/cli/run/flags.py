"""The flags of the harness after `--`, in the types of the harness."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput
from farm.core.matrices.matrix import value_text

if TYPE_CHECKING:
    from farm.wire.documents.files.programs import FlagView, HarnessView

_BOOLEANS = {"true": True, "false": False}


def flag_values(words: Sequence[str], harness: "HarnessView") -> dict[str, SettingValue]:
    """Parse `--iter=5`, `--iter 5` or, for a boolean flag, `--fast`; `-` in names stands for `_`.

    Raises:
        InvalidInput: the flag is unknown, or its value is missing or of another type.
    """
    flag_by_name = {flag.name: flag for flag in harness.flags}
    values: dict[str, SettingValue] = {}
    for name, text in _pairs(words, flag_by_name, harness.name):
        flag = flag_by_name[name]
        if name in values:
            raise InvalidInput(f"--{name} is given twice", hint="flags that vary are axes of a matrix file")
        values[name] = _value(flag, text)
        if values[name] == "" != flag.default:
            raise InvalidInput(
                f"--{name} is empty, and a matrix cannot contain empty text", hint=_example_value(flag)
            )
    return values


def _pairs(
    words: Sequence[str], flag_by_name: "dict[str, FlagView]", harness: str
) -> Iterator[tuple[str, str | None]]:
    """Return each flag with its text; None for a flag without a value."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            hint = f"flags of {harness} follow `--`, like --name=value"
            raise InvalidInput(f"{word!r} is not a flag", hint=hint)
        name, equals, text = word.removeprefix("--").partition("=")
        name = name if name in flag_by_name else name.replace("-", "_")
        if name not in flag_by_name:
            raise _unknown_flag(name, flag_by_name, harness)
        if equals:
            yield name, text
        elif isinstance(flag_by_name[name].default, bool) and (not rest or rest[0] not in _BOOLEANS):
            yield name, None
        elif rest:
            yield name, rest.pop(0)
        else:
            raise InvalidInput(f"--{name} has no value", hint=_example_value(flag_by_name[name]))


def _value(flag: "FlagView", text: str | None) -> SettingValue:
    if text is None:
        return True
    try:
        value = _parse_value(flag.default, text)
    except (ValueError, KeyError) as error:
        raise InvalidInput(f"--{flag.name}: {text!r} does not fit", hint=_example_value(flag)) from error
    if flag.minimum is not None and not isinstance(value, str) and value < flag.minimum:
        raise InvalidInput(f"--{flag.name}: {text} is less than {flag.minimum}", hint=_example_value(flag))
    return value


def _parse_value(default: SettingValue, text: str) -> SettingValue:
    match default:
        case bool():
            return _BOOLEANS[text.lower()]
        case int():
            return int(text)
        case float():
            return float(text)
        case str():
            return text


def _example_value(flag: "FlagView") -> str:
    description = f"{flag.help}; " if flag.help else ""
    return f"{description}its default is {value_text(flag.default) or 'empty'}"


def _unknown_flag(name: str, flag_by_name: "dict[str, FlagView]", harness: str) -> InvalidInput:
    hint = name_hint(name, flag_by_name) or f"{harness} has no flags"
    return InvalidInput(f"{harness} has no flag --{name}", hint=hint)
