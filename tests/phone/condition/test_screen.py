import re

import pytest

from agents.device.conditions import SCREEN_LINES
from farm.phone.condition.screen import screen_on

DUMP = """\
POWER MANAGER (dumpsys power)

Power Manager State:
  mDirty=0x0
  mWakefulness={wakefulness}
  mWakefulnessChanging=false
  mWakefulnessRaw=Awake
Display Power: state={display}
"""


@pytest.mark.parametrize(
    ("wakefulness", "display", "is_on"),
    [
        ("Awake", "ON", True),
        ("Asleep", "OFF", False),
        ("Dozing", "DOZE", False),
        ("Dozing", "DOZE_SUSPEND", False),
        ("Dreaming", "ON", True),
        # On its way: the display has not followed yet, or says what we do not know.
        ("Asleep", "UNKNOWN", False),
        ("Awake", "ON_SUSPEND", True),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_screen_is_as_its_display_says(
    wakefulness: str, display: str, is_on: bool, line_end: str
) -> None:
    text = DUMP.format(wakefulness=wakefulness, display=display)
    assert screen_on(text.replace("\n", line_end)) is is_on


def test_newer_phones_that_name_no_display_there_are_on_while_they_are_awake() -> None:
    assert screen_on("  mWakefulness=Awake\n  mWakefulnessChanging=false\n") is True
    assert screen_on("  mWakefulness=Asleep\n") is False


def test_a_phone_without_that_service_says_nothing() -> None:
    assert screen_on("Can't find service: power\n") is None


@pytest.mark.parametrize(
    ("said", "is_on"), [("Awake", True), ("Asleep", False), ("Dozing", False), ("1", True), ("3", False)]
)
def test_samsungs_name_their_wakefulness_in_a_way_of_their_own(said: str, is_on: bool) -> None:
    assert screen_on(f"  getWakefulnessLocked()={said}\n  mWakefulnessChanging=false\n") is is_on


def test_the_lines_that_are_asked_for_hold_all_that_is_read() -> None:
    asked = re.compile(SCREEN_LINES)
    for line in ("  mWakefulness=Awake", "  getWakefulnessLocked()=Awake", "Display Power: state=ON"):
        assert asked.search(line)
    assert not asked.search("  mWakefulnessChanging=false")
