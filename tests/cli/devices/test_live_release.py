"""A device that a command holds is released whichever signal ends it, and while it waits for it, too."""

import os
import signal
from typing import Any

import pytest

from farm.cli.devices.live.release import SIGNALS, released
from farm.core.base.ids import DeviceId
from farm.core.errors import FarmUnreachable


class Farm:
    """A farm that notes what is asked of it."""

    def __init__(self, *, is_away: bool = False) -> None:
        self.asked: list[tuple[str, str]] = []
        self.is_away = is_away

    def change_device(self, device: str, action: str, request: Any) -> Any:
        self.asked.append((device, action))
        # The signal of an impatient person does not keep the device reserved.
        os.kill(os.getpid(), signal.SIGTERM)
        if self.is_away:
            raise FarmUnreachable("no farm answers")
        return type("Change", (), {"message": "released"})


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("is_away", [False, True])
def test_a_signal_ends_the_wait_and_releases_the_device(
    number: signal.Signals, is_away: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARM_USER", "ann")
    farm: Any = Farm(is_away=is_away)
    before = [signal.getsignal(each) for each in SIGNALS]
    with pytest.raises(KeyboardInterrupt), released(farm, DeviceId("phone-1")):
        signal.raise_signal(number)
    assert farm.asked == [("phone-1", "release")]
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_a_device_is_released_where_nothing_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_USER", "ann")
    farm: Any = Farm()
    with released(farm, DeviceId("phone-1")):
        pass
    assert farm.asked == [("phone-1", "release")]
