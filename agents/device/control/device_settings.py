"""Checking and changing the Android settings of a device."""

from collections.abc import Iterable, Sequence
from shlex import quote

from agents.adb.client import AdbDevice
from farm.core.errors import DeviceProtocol
from farm.core.upkeep.device_settings import (
    DEVICE_SETTINGS,
    SettingRestore,
    SettingResult,
    compare_settings,
    results_of_change,
    results_of_restore,
    settings_to_change,
)
from farm.phone.settings import settings_list

#: Each command starts an Android process: about 50 ms, and many times that on an old device.
_DEADLINE_S = 60.0
_NAMESPACES = ("global", "system", "secure")
_SWITCH_BY_NAME = {setting.name: setting.switch for setting in DEVICE_SETTINGS if setting.switch}


async def check_settings(device: AdbDevice, *, on_network: bool) -> tuple[SettingResult, ...]:
    """Check the settings; change nothing.

    Raises:
        DeviceError: the device went away, was too slow, or has no settings.
    """
    return compare_settings(await _values(device), on_network=on_network)


async def apply_settings(device: AdbDevice, *, on_network: bool) -> tuple[SettingResult, ...]:
    """Check, change what differs, and check again. Raises as `check_settings`."""
    results = await check_settings(device, on_network=on_network)
    wanted = settings_to_change(results)
    if not wanted:
        return results
    await _write(device, [(setting.name, setting.wanted) for setting in wanted])
    return results_of_change(results, await _values(device))


async def restore_settings(
    device: AdbDevice, to_restore: Sequence[SettingRestore]
) -> tuple[SettingResult, ...]:
    """Restore settings to their previous values, and check. Raises as `check_settings`."""
    before = await _values(device)
    await _write(device, [(setting.name, setting.value) for setting in to_restore])
    return results_of_restore(before, to_restore, await _values(device))


async def _values(device: AdbDevice) -> dict[str, str]:
    commands = {namespace: f"settings list {namespace} && echo; echo $?" for namespace in _NAMESPACES}
    sections = await device.read_sections(commands, _DEADLINE_S)
    # An empty namespace is valid output; a device without the command returns an exit code of its own.
    if any(sections.get(namespace, "").split()[-1:] != ["0"] for namespace in _NAMESPACES):
        raise DeviceProtocol(f"{device.serial} does not report its settings")
    values: dict[str, str] = {}
    for namespace in _NAMESPACES:
        values.update(settings_list(sections[namespace], namespace))
    return values


async def _write(device: AdbDevice, values: Iterable[tuple[str, str | None]]) -> None:
    """Write settings; a value that the device rejects shows when it is read back."""
    commands = "; ".join(f"{_command(name, value)} >/dev/null 2>&1" for name, value in values)
    await device.shell(commands, deadline_s=_DEADLINE_S)


def _command(name: str, value: str | None) -> str:
    namespace, _, key = name.partition("/")
    if (switch := _SWITCH_BY_NAME.get(name)) is not None:
        return f"svc {switch} {'disable' if value in (None, '0') else 'enable'}"
    if value is None:
        return f"settings delete {namespace} {quote(key)}"
    return f"settings put {namespace} {quote(key)} {quote(value)}"
