"""The settings of a virtual phone, looked at, changed and put back through adb."""

import pytest

from agents.adb.client import AdbDevice
from agents.device.control.device_settings import apply_settings, check_settings, restore_settings
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.errors import DeviceProtocol
from farm.core.upkeep.device_settings import DEVICE_SETTINGS, SettingState, settings_to_restore

pytestmark = pytest.mark.anyio


def kept(phone: VirtualDeviceHandle, name: str) -> str | None:
    path = phone.state / "settings" / name
    return path.read_text().strip() if path.exists() else None


async def test_a_look_changes_nothing(device: AdbDevice, phone: VirtualDeviceHandle) -> None:
    await device.shell("settings put global low_power 1", deadline_s=60)
    found = await check_settings(device, on_network=False)
    (low_power,) = [each for each in found if each.name == "global/low_power"]
    assert (low_power.state, low_power.before) == (SettingState.DIFFERENT, "1")
    assert kept(phone, "global/low_power") == "1"
    assert kept(phone, "system/screen_brightness") is None


async def test_what_differs_is_set_and_put_back(device: AdbDevice, phone: VirtualDeviceHandle) -> None:
    await device.shell("settings put global low_power 1; svc bluetooth enable", deadline_s=60)
    found = await apply_settings(device, on_network=False)
    assert {each.state for each in found} <= {SettingState.RIGHT, SettingState.SET}
    assert kept(phone, "global/low_power") == "0"
    assert kept(phone, "global/bluetooth_on") == "0"
    assert kept(phone, "system/screen_brightness") == "10"
    assert {each.state for each in await check_settings(device, on_network=False)} == {SettingState.RIGHT}
    undone = await restore_settings(device, settings_to_restore(found))
    assert {each.state for each in undone} == {SettingState.RESTORED}
    assert kept(phone, "global/low_power") == "1"
    assert kept(phone, "global/bluetooth_on") == "1"
    assert kept(phone, "system/screen_brightness") is None


async def test_the_wifi_of_a_phone_on_the_network_stays_on(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    await device.shell("svc wifi enable", deadline_s=60)
    found = await apply_settings(device, on_network=True)
    (wifi,) = [each for each in found if each.name == "global/wifi_on"]
    assert wifi.state is SettingState.SKIPPED
    assert kept(phone, "global/wifi_on") == "1"


async def test_a_phone_without_settings_says_so(device: AdbDevice, phone: VirtualDeviceHandle) -> None:
    (phone.state / "bin" / "settings").write_text("#!/bin/sh\nexit 20\n")
    with pytest.raises(DeviceProtocol, match="does not report its settings"):
        await apply_settings(device, on_network=False)


async def test_a_setting_that_the_phone_does_not_take_is_shown(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    real = phone.state / "bin" / "settings"
    real.rename(phone.state / "bin" / "settings.real")
    real.write_text('#!/bin/sh\n[ "$3" = low_power ] && exit 1\nexec "$0.real" "$@"\n')
    real.chmod(0o755)
    (phone.state / "settings" / "global").mkdir(parents=True, exist_ok=True)
    (phone.state / "settings" / "global" / "low_power").write_text("1\n")
    found = await apply_settings(device, on_network=False)
    refused = [each.name for each in found if each.state is SettingState.REFUSED]
    assert refused == ["global/low_power"]
    assert len(found) == len(DEVICE_SETTINGS)
