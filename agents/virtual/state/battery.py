"""The battery of a virtual phone: present while a fault gives it a level; it charges and drains."""

from dataclasses import replace
from pathlib import Path

from agents.virtual.state.faults import Faults
from agents.virtual.state.sysfs import SYS_FOLDER

#: Root pauses charging there, as on devices with Qualcomm's chips.
_SUSPEND = "class/power_supply/battery/input_suspend"
_ROOTED = "rooted"


class SimulatedBattery:
    """The simulated level. It is simulated only: there is no battery to charge."""

    def __init__(self, state: Path) -> None:
        self._suspend = state / SYS_FOLDER / _SUSPEND
        self._rooted = state / _ROOTED
        #: The last values of the faults: a phone that was rooted in another way stays so.
        self._told_rooted = False
        self._told_pct: int | None = None
        self._level_pct = 0.0
        self._at_s = 0.0

    def with_battery(self, faults: Faults, now_s: float) -> Faults:
        """Return the faults with the battery's current level, and whether it charges."""
        self._set_rooted(faults.rooted)
        if faults.battery_level_pct is None:
            self._told_pct = None
            return faults
        charging = faults.charging and not self._is_suspended()
        if faults.battery_level_pct != self._told_pct:
            self._told_pct, self._level_pct = faults.battery_level_pct, float(faults.battery_level_pct)
        else:
            moved = (now_s - self._at_s) * faults.battery_pct_per_s
            self._level_pct += moved if charging else -moved
        self._at_s = now_s
        self._level_pct = min(100.0, max(0.0, self._level_pct))
        return replace(faults, battery_level_pct=round(self._level_pct), charging=charging)

    def _is_suspended(self) -> bool:
        try:
            return self._suspend.read_text().strip() == "1"
        except OSError:
            return False

    def _set_rooted(self, rooted: bool) -> None:
        if rooted == self._told_rooted:
            return
        self._told_rooted = rooted
        if rooted:
            self._suspend.parent.mkdir(parents=True, exist_ok=True)
            self._suspend.write_text("0\n")
            self._rooted.touch()
        else:
            self._rooted.unlink(missing_ok=True)
            self._suspend.unlink(missing_ok=True)
