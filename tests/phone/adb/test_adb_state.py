"""adb's state words."""

import pytest

from farm.core.devices.device import Presence
from farm.phone.adb.listing import presence


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("device", Presence.BOOTING),
        ("offline", Presence.OFFLINE),
        ("connecting", Presence.OFFLINE),
        ("authorizing", Presence.UNAUTHORIZED),
        ("unauthorized", Presence.UNAUTHORIZED),
        ("recovery", Presence.WRONG_MODE),
        ("sideload", Presence.WRONG_MODE),
        ("bootloader", Presence.WRONG_MODE),
        ("no permissions", Presence.NO_PERMISSION),
        ("no permissions (missing udev rules?); see [http://x]", Presence.NO_PERMISSION),
        (None, Presence.ABSENT),
    ],
)
def test_a_state_word_amounts_to_a_presence(state: str | None, expected: Presence) -> None:
    assert presence(state) is expected


def test_an_unknown_word_is_never_taken_for_a_usable_phone() -> None:
    assert presence("levitating") is Presence.OFFLINE


def test_adb_alone_never_makes_a_phone_online() -> None:
    words = ["device", "device\r", " device", "host", "ONLINE", "online", ""]
    assert Presence.ONLINE not in {presence(word) for word in words}
