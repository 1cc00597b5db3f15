"""Settings profile of a farm device: which settings, why, and how they compare with the device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from farm.core.base.bounds import LongText, Note, Word
from farm.core.upkeep.device_action import DeviceActionKind


class SettingState(StrEnum):
    """The state of one setting."""

    #: As it should be.
    RIGHT = "right"
    #: Another value, and no operator agreed to change it.
    DIFFERENT = "different"
    #: Changed, and read back.
    SET = "set"
    #: It was set, and read back as another value: the phone does not take it.
    REFUSED = "refused"
    #: Put back to what it was before the farm set it.
    RESTORED = "restored"
    #: Left alone on purpose; the note says why.
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSetting:
    """One setting: `name` is `NAMESPACE/KEY` of Android's settings, which is where it is read."""

    name: str
    wanted: str
    why: str
    #: Values that serve as well; None stands for a key that is not there.
    also: tuple[str | None, ...] = ()
    #: Switched by `svc SWITCH enable|disable`, as writing the setting alone changes nothing.
    switch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingResult:
    """The value of a setting on the device and the result of changing it. None: the key does not exist."""

    name: Word
    why: Note
    wanted: Word
    before: LongText | None
    now: LongText | None
    state: SettingState
    #: The value before the farm first set it; only where the farm did.
    original: LongText | None = None
    #: True if the farm set it, so that an undo puts `original` back.
    ours: bool = False
    note: Note | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRestore:
    """A value that an undo writes: None removes the key."""

    name: str
    value: str | None


_OFF = (None, "0")
_ADB = "the phone forgets this host's key after a week without use"
_UPDATES = "an update changes numbers, and restarts the phone"
_POWER = "saving power slows the clocks"
_BACKGROUND = "work in the background disturbs measurements"
_SCREEN = "the screen is as hot, and as busy, in each run"
_RADIO = "a radio that scans and syncs takes power and wakes the CPU"

#: From Android's source: Settings.Global, Settings.System and Settings.Secure.
DEVICE_SETTINGS: tuple[DeviceSetting, ...] = (
    DeviceSetting(name="global/adb_allowed_connection_time", wanted="0", why=_ADB),
    DeviceSetting(
        name="global/stay_on_while_plugged_in",
        wanted="15",
        # 7 is all chargers before docks came.
        also=("7",),
        why="a phone that sleeps stops its CPU between two commands",
    ),
    DeviceSetting(name="global/ota_disable_automatic_update", wanted="1", why=_UPDATES),
    DeviceSetting(name="global/low_power", wanted="0", also=_OFF, why=_POWER),
    DeviceSetting(name="global/low_power_sticky", wanted="0", also=_OFF, why=_POWER),
    DeviceSetting(name="global/low_power_trigger_level", wanted="0", why=_POWER),
    DeviceSetting(name="global/automatic_power_save_mode", wanted="0", also=_OFF, why=_POWER),
    DeviceSetting(name="global/adaptive_battery_management_enabled", wanted="0", why=_POWER),
    DeviceSetting(name="global/app_standby_enabled", wanted="0", why=_POWER),
    DeviceSetting(name="global/window_animation_scale", wanted="0", also=("0.0",), why=_SCREEN),
    DeviceSetting(name="global/transition_animation_scale", wanted="0", also=("0.0",), why=_SCREEN),
    DeviceSetting(name="global/animator_duration_scale", wanted="0", also=("0.0",), why=_SCREEN),
    DeviceSetting(name="system/screen_off_timeout", wanted="1800000", why=_SCREEN),
    DeviceSetting(name="system/screen_brightness_mode", wanted="0", why=_SCREEN),
    DeviceSetting(name="system/screen_brightness", wanted="10", why=_SCREEN),
    DeviceSetting(name="system/accelerometer_rotation", wanted="0", why=_SCREEN),
    DeviceSetting(name="secure/screensaver_enabled", wanted="0", also=_OFF, why=_SCREEN),
    DeviceSetting(name="secure/doze_always_on", wanted="0", also=_OFF, why=_SCREEN),
    DeviceSetting(name="secure/location_mode", wanted="0", also=_OFF, why=_BACKGROUND),
    DeviceSetting(
        name="global/verifier_verify_adb_installs",
        wanted="0",
        why="Play Protect scans what adb installs, in the background",
    ),
    DeviceSetting(name="global/wifi_scan_always_enabled", wanted="0", also=_OFF, why=_RADIO),
    DeviceSetting(name="global/ble_scan_always_enabled", wanted="0", also=_OFF, why=_RADIO),
    DeviceSetting(name="global/bluetooth_on", wanted="0", also=_OFF, switch="bluetooth", why=_RADIO),
    DeviceSetting(name="global/wifi_on", wanted="0", also=_OFF, switch="wifi", why=_RADIO),
)
#: Settings that matter as much, and that no shell can set.
MANUAL_STEPS = (
    "Play Store, Settings, Network preferences: turn automatic app updates off",
    "the maker's own updaters and battery care are in its own settings",
    "remove the screen lock, so that a restart needs no one",
    "airplane mode and NFC: a shell reads or switches them on some releases only",
)
#: Text for a key that is not there.
NOT_SET = "not set"
_WORDS = {
    SettingState.DIFFERENT: "differ",
    SettingState.SET: "set",
    SettingState.REFUSED: "not taken by the phone",
    SettingState.RESTORED: "put back",
    SettingState.SKIPPED: "left alone",
}
_NETWORK = "left on: adb reaches the phone over a network"


def compare_settings(values: Mapping[str, str], *, on_network: bool) -> tuple[SettingResult, ...]:
    """Compare the values on a device with the profile.

    Args:
        values: by `NAMESPACE/KEY`; a key that is not there is missing.
        on_network: adb reaches the phone by Wi-Fi or TCP, which nothing here may cut.
    """
    return tuple(
        _compare_setting(setting, values.get(setting.name), on_network) for setting in DEVICE_SETTINGS
    )


def settings_to_change(rows: Sequence[SettingResult]) -> tuple[DeviceSetting, ...]:
    """Return the settings to change, once an operator has agreed."""
    names = {result.name for result in rows if result.state is SettingState.DIFFERENT}
    return tuple(setting for setting in DEVICE_SETTINGS if setting.name in names)


def results_of_change(rows: Sequence[SettingResult], values: Mapping[str, str]) -> tuple[SettingResult, ...]:
    """Return the results of a change, by another reading of the device."""
    return tuple(
        _result_of_change(row, values.get(row.name)) if row.state is SettingState.DIFFERENT else row
        for row in rows
    )


def results_of_restore(
    before: Mapping[str, str], put_back: Sequence[SettingRestore], values: Mapping[str, str]
) -> tuple[SettingResult, ...]:
    """Return the results of a restore, by another reading of the device."""
    setting_by_name = {setting.name: setting for setting in DEVICE_SETTINGS}
    return tuple(
        SettingResult(
            name=undo.name,
            why=setting_by_name[undo.name].why,
            wanted=setting_by_name[undo.name].wanted,
            before=before.get(undo.name),
            now=values.get(undo.name),
            state=SettingState.RESTORED if values.get(undo.name) == undo.value else SettingState.REFUSED,
        )
        for undo in put_back
        if undo.name in setting_by_name
    )


def keep_originals(
    rows: Sequence[SettingResult], earlier: Sequence[SettingResult]
) -> tuple[SettingResult, ...]:
    """Return newer results that keep the values from before the farm first changed them.

    A setting that was put back has no original any more; one that could not be put back keeps it.
    """
    by_name = {result.name: result for result in earlier if result.ours}
    return tuple(_keep_original(result, by_name.get(result.name)) for result in rows)


def settings_to_restore(rows: Sequence[SettingResult]) -> tuple[SettingRestore, ...]:
    """Return the values that an undo has to write."""
    return tuple(SettingRestore(name=result.name, value=result.original) for result in rows if result.ours)


def settings_text(rows: Sequence[SettingResult]) -> str:
    """Describe findings and changes, for an event and for people."""
    counts = {state: [result for result in rows if result.state is state] for state in SettingState}
    right = len(counts[SettingState.RIGHT])
    sentences = [f"{right} settings are as they should be"] if right else []
    for state, words in _WORDS.items():
        if group := counts[state]:
            sentences.append(f"{len(group)} {words}: {', '.join(map(_change_text, group))}")
    return "; ".join(sentences)


def _change_text(result: SettingResult) -> str:
    if result.state in (SettingState.SET, SettingState.RESTORED):
        return f"{result.name} {result.before or NOT_SET} to {result.now or NOT_SET}"
    return f"{result.name} {result.now or NOT_SET}, should be {result.wanted}"


def _compare_setting(setting: DeviceSetting, value: str | None, on_network: bool) -> SettingResult:
    is_right = value == setting.wanted or value in setting.also
    state = SettingState.RIGHT if is_right else SettingState.DIFFERENT
    cut = on_network and setting.switch == "wifi"
    return SettingResult(
        name=setting.name,
        why=setting.why,
        wanted=setting.wanted,
        before=value,
        now=value,
        state=SettingState.SKIPPED if cut and not is_right else state,
        note=_NETWORK if cut and not is_right else None,
    )


def _result_of_change(result: SettingResult, value: str | None) -> SettingResult:
    if value != result.wanted:
        return replace(result, now=value, state=SettingState.REFUSED)
    return replace(result, now=value, state=SettingState.SET, original=result.before, ours=True)


def _keep_original(result: SettingResult, earlier: SettingResult | None) -> SettingResult:
    if earlier is None or result.state is SettingState.RESTORED:
        return result
    return replace(result, original=earlier.original, ours=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSettingsRecord:
    """The last that was done about a phone's settings, as the farm keeps it with the phone."""

    at: datetime
    kind: DeviceActionKind
    requested_by: str
    settings: tuple[SettingResult, ...]
