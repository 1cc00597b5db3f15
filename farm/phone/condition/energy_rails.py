"""Energy of the device's power rails, as the power stats HAL of Pixels prints it.

`dumpsys android.hardware.power.stats.IPowerStats/default` of HAL 2.0 (AIDL, Pixel 6 and newer) has a table
`energy meter`, one row for each channel of the on-device power monitors: `[RAIL]:SUBSYSTEM`, or the rail
alone in the first versions, and the energy since boot in mWs, which are millijoules. `dumpsys powerstats`
lists the channels without their energy. Format: AOSP, hardware/google/pixel/powerstats, `dumpEnergyMeter`.
"""

import re

from farm.core.runs.derived.energy import RailReading
from farm.phone.adb.decoding import lines

#: The service of the HAL.
RAILS_SERVICE = "android.hardware.power.stats.IPowerStats/default"
_HEADING, _END = "PowerStats HAL 2.0 energy meter", "End of PowerStats HAL 2.0 energy meter"
#: Within 64 bits of microjoules.
_ROW = re.compile(
    r"\s{0,40}(\[[^\[\]\s]{1,80}\]:\S{1,80}|[A-Za-z][\w.-]{0,80})\s{1,40}([0-9]{1,13}\.[0-9]{1,3}) mWs\b.*",
    re.ASCII,
)
_UPTIME = re.compile(r"uptime ([0-9]{1,10}\.[0-9]{1,3})(?: .*)?", re.ASCII)
_MAX_RAILS = 64


def rail_reading(text: str) -> RailReading | None:
    """Parse the energy since boot of each rail, in joules; None where the text has no complete table.

    A rail that is there twice is left out: which of the two it is cannot be told.
    """
    joules: dict[str, float] = {}
    doubled: set[str] = set()
    in_table = is_whole = False
    uptime_s: float | None = None
    for line in lines(text):
        if (match := _UPTIME.fullmatch(line)) is not None and not in_table:
            uptime_s = float(match[1])
        elif _END in line:
            is_whole, in_table = is_whole or in_table, False
        elif _HEADING in line:
            in_table = not is_whole
        elif in_table and (match := _ROW.fullmatch(line)) is not None:
            doubled |= {match[1]} & joules.keys()
            joules[match[1]] = float(match[2]) / 1e3
    rails = {name: value for name, value in joules.items() if name not in doubled}
    if not is_whole or not rails or len(rails) > _MAX_RAILS:
        return None
    return RailReading(joules=rails, uptime_s=uptime_s)
