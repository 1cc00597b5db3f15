"""Settings of harnesses: flags with their default values and limits, and which values differ from them."""

from collections.abc import Mapping
from dataclasses import dataclass

SettingValue = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One setting of a harness; the default shows its type."""

    default: SettingValue
    help: str = ""
    minimum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedFlag(Flag):
    """A setting that has a greatest value, too."""

    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceFlag(Flag):
    """A setting whose value is one of some words."""

    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedFlag(Flag):
    """A setting for which the program has an option of another name."""

    option: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterFlag(Flag):
    """A setting of the adapter's own, for which the program has no option."""


def flag_maximum(flag: Flag) -> int | None:
    """Return the greatest value of a flag; None without one."""
    return flag.maximum if isinstance(flag, BoundedFlag) else None


def flag_option(name: str, flag: Flag) -> str:
    """Return what the program calls a flag."""
    return flag.option if isinstance(flag, RenamedFlag) else name


def flag_choices(flag: Flag) -> tuple[str, ...]:
    """Return the only values of a flag; none where any value of its type will do."""
    return flag.choices if isinstance(flag, ChoiceFlag) else ()


def non_default_settings(
    settings: Mapping[str, SettingValue], defaults: Mapping[str, SettingValue]
) -> dict[str, SettingValue]:
    """Return the settings that differ from the harness's defaults, in value or in type."""
    return {
        name: value
        for name, value in settings.items()
        if name not in defaults or (value, type(value)) != (defaults[name], type(defaults[name]))
    }
