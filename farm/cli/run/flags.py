"""The harness's flags behind `--`, in the types that the harness gives them."""

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
    """`--iter=5`, `--iter 5` or, of a flag that is true or false, `--fast`; `-` in names stands for `_`.

    Raises:
        InvalidInput: no flag, no value, or not of the flag's type.
    """
    flag_by_name = {flag.name: flag for flag in harness.flags}
    values: dict[str, SettingValue] = {}
    for name, text in _pairs(words, flag_by_name, harness.name):
        flag = flag_by_name[name]
        if name in values:
            raise InvalidInput(f"--{name} is there twice", hint="flags that vary are axes of a matrix file")
        values[name] = _value(flag, text)
        if values[name] == "" != flag.default:
            raise InvalidInput(
                f"--{name} is empty, and a matrix holds no empty text", hint=_example_value(flag)
            )
    return values


def _pairs(
    words: Sequence[str], known: "dict[str, FlagView]", harness: str
) -> Iterator[tuple[str, str | None]]:
    """Each flag with what is given to it; None for a flag that stands alone."""
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("--"):
            hint = f"flags of {harness} stand behind `--`, like --name=value"
            raise InvalidInput(f"{word!r} is no flag", hint=hint)
        name, equals, text = word.removeprefix("--").partition("=")
        name = name if name in known else name.replace("-", "_")
        if name not in known:
            raise _unknown_flag(name, known, harness)
        if equals:
            yield name, text
        elif isinstance(known[name].default, bool) and (not left or left[0] not in _BOOLEANS):
            yield name, None
        elif left:
            yield name, left.pop(0)
        else:
            raise InvalidInput(f"--{name} has no value", hint=_example_value(known[name]))


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
    said = f"{flag.help}; " if flag.help else ""
    return f"{said}its default is {value_text(flag.default) or 'empty'}"


def _unknown_flag(name: str, known: "dict[str, FlagView]", harness: str) -> InvalidInput:
    hint = name_hint(name, known) or f"{harness} has no flags"
    return InvalidInput(f"{harness} has no flag --{name}", hint=hint)
