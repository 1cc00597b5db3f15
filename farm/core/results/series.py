"""Series: the identity under which measurements form one history."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields

from farm.core.base.ids import DeviceId, Digest, digest_of
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.devices.controls import Controls, non_default_controls
from farm.core.models.variant import Recipe
from farm.core.runs.derived.sustained import SUSTAINED_SETTING
from farm.core.runs.measurement import EnergyMethod

_ENERGY_SETTING = "run.energy"


def series_digest(
    *,
    model: str | None,
    recipe: Recipe | None,
    backend: str,
    harness: str,
    settings: Mapping[str, SettingValue],
    defaults: Mapping[str, SettingValue],
    device_id: DeviceId,
) -> Digest:
    """Identify a series.

    Only what differs from a default enters, so a new flag or recipe field leaves old series as they are.
    The price: a harness flag's default may never change, or histories of different work would be joined.
    """
    changed = non_default_settings(settings, defaults)
    work = _work(model=model, recipe=recipe, backend=backend, harness=harness, settings=changed)
    return _digest({**work, "device_id": device_id})


def slot_number(
    *,
    model: str | None,
    recipe: Recipe | None,
    backend: str,
    harness: str,
    settings: Mapping[str, SettingValue],
) -> int:
    """Identify what a series has in common with its like on other devices, its slot.

    File, program, system build and control level are no part of it: they are its versions.

    Args:
        model: of the series; None if the harness runs none.
        recipe: of its file.
        backend: as requested.
        harness: its name.
        settings: as the series has them: without those that are the harness's defaults.

    Returns:
        63 bits of a digest: two of a million slots are equal once in ten million farms.
    """
    work = _work(model=model, recipe=recipe, backend=backend, harness=harness, settings=settings)
    return int(_digest(work)[:16], 16) >> 1


def _work(
    *,
    model: str | None,
    recipe: Recipe | None,
    backend: str,
    harness: str,
    settings: Mapping[str, SettingValue],
) -> dict[str, object]:
    return {
        "model": model,
        "recipe": None if recipe is None else _non_default_recipe(recipe),
        "backend": backend,
        "harness": harness,
        "settings": settings,
    }


def _digest(identity: Mapping[str, object]) -> Digest:
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return digest_of(text.encode())


def settings_of_series(
    settings: Mapping[str, SettingValue],
    controls: Controls,
    *,
    sustained_s: int | None = None,
    energy: EnergyMethod = "none",
) -> dict[str, SettingValue]:
    """Return the settings that identify a series: the cell's flags, and how its runs are measured.

    Runs of different controls, sustained ones and others, and runs whose energy is measured by different
    methods are different work, and form no one history.
    """
    mode: dict[str, SettingValue] = {} if sustained_s is None else {SUSTAINED_SETTING: sustained_s}
    if energy != "none":
        mode[_ENERGY_SETTING] = energy
    return {**settings, **non_default_controls(controls), **mode}


def _non_default_recipe(recipe: Recipe) -> dict[str, str]:
    return {
        field.name: getattr(recipe, field.name)
        for field in fields(recipe)
        if field.default is MISSING or getattr(recipe, field.name) != field.default
    }
