"""The presence that adb's state of a device stands for."""

from collections.abc import Mapping

from farm.core.devices.device import Presence

#: AOSP: to_string(ConnectionState) in adb.cpp. `device` means that adbd answers; Android may still be
#: booting.
_PRESENCE_BY_STATE: Mapping[str, Presence] = {
    "device": Presence.BOOTING,
    "offline": Presence.OFFLINE,
    "connecting": Presence.OFFLINE,
    "detached": Presence.OFFLINE,
    "authorizing": Presence.UNAUTHORIZED,
    "unauthorized": Presence.UNAUTHORIZED,
    "bootloader": Presence.WRONG_MODE,
    "fastboot": Presence.WRONG_MODE,
    "recovery": Presence.WRONG_MODE,
    "rescue": Presence.WRONG_MODE,
    "sideload": Presence.WRONG_MODE,
    "host": Presence.WRONG_MODE,
}


def presence(state: str | None) -> Presence:
    """Return the presence of a state word; None for a device that adb does not list.

    `device` gives BOOTING, as only a probe earns ONLINE. An unknown word gives OFFLINE. `no permissions` of a
    listing carries a reason and a link behind it, in a form that differs by adb version.
    """
    if state is None:
        return Presence.ABSENT
    word = state.strip()
    if word.startswith("no permissions"):
        return Presence.NO_PERMISSION
    return _PRESENCE_BY_STATE.get(word, Presence.OFFLINE)
