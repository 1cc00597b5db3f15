"""Values of a harness's settings, and which of them differ from its defaults."""

from collections.abc import Mapping

SettingValue = str | int | float | bool


def non_default_settings(
    settings: Mapping[str, SettingValue], defaults: Mapping[str, SettingValue]
) -> dict[str, SettingValue]:
    """Return the settings that differ from the harness's defaults, in value or in type."""
    return {
        name: value
        for name, value in settings.items()
        if name not in defaults or (value, type(value)) != (defaults[name], type(defaults[name]))
    }
