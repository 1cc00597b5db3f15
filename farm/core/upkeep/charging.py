"""Decide when to charge: batteries of phones that are attached to a charger for years are kept from full."""

import re
from dataclasses import dataclass

from farm.core.devices.condition import Gates

#: Below this a phone is near the floor of the usual gate, and may not start after a flat night.
LOWEST_PCT = 20
#: A narrower window would switch every few minutes.
NARROWEST_PCT = 5
_WINDOW = re.compile(r"\s*(\d{1,3})\s*-\s*(\d{1,3})\s*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeWindow:
    """The levels between which a battery is kept.

    Invariant: LOWEST_PCT <= low_pct, high_pct <= 100, and NARROWEST_PCT between them.
    """

    low_pct: int
    high_pct: int

    def __str__(self) -> str:
        return f"{self.low_pct}-{self.high_pct} %"


def charge_window(text: str) -> ChargeWindow:
    """Parse a window as settings give it: `40-80`.

    Raises:
        ValueError: it is none, or one that makes no sense.
    """
    match = _WINDOW.fullmatch(text.replace("%", ""))
    if match is None:
        raise ValueError(f"{text!r} is not a window such as 40-80")
    low, high = int(match[1]), int(match[2])
    if not (low >= LOWEST_PCT and low + NARROWEST_PCT <= high <= 100):
        raise ValueError(
            f"{text!r}: from {LOWEST_PCT} to 100 percent, {NARROWEST_PCT} or more in between, such as 40-80"
        )
    return ChargeWindow(low_pct=low, high_pct=high)


def should_charge(
    window: ChargeWindow | None, level_pct: int | None, *, is_held: bool, gates: Gates | None = None
) -> bool:
    """Tell whether a device is to be charged now.

    In between it goes on as it is: charged up to the window's top, then left until its bottom.

    Args:
        window: None where batteries are not looked after.
        level_pct: of the battery; None where the phone has none or does not say.
        is_held: it is kept from charging now.
        gates: of the run that the phone is to begin next, which must not wait for us.
    """
    if window is None or level_pct is None:
        return True
    if gates is not None and (gates.mains or level_pct < gates.min_battery_pct):
        return True
    if level_pct >= window.high_pct:
        return False
    return level_pct <= window.low_pct or not is_held
