"""A phone's screen and wakefulness as controls: how they were found, and were read back around a run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from farm.core.devices.condition import Condition
from farm.core.devices.controls import Controls, ControlState, Screen

#: Names of states that every reading of the condition shows; the device records all others.
STAY_AWAKE, SCREEN = "stay_awake", "screen"
OBSERVED_CONTROLS = frozenset({STAY_AWAKE, SCREEN})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenState:
    """The screen state of a device before it was kept awake. None: not reported."""

    stay_awake: bool | None = None
    screen_on: bool | None = None


def screen_controls(controls: Controls, original: ScreenState, before: Condition) -> Iterator[ControlState]:
    """Yield the screen controls that were set, as read back right before the run."""
    if controls.stay_awake:
        yield ControlState(
            name=STAY_AWAKE,
            requested="on",
            before=_on_off(original.stay_awake),
            actual_before=_on_off(before.stay_awake),
        )
    if controls.screen is not Screen.LEAVE:
        yield ControlState(
            name=SCREEN,
            requested=controls.screen,
            before=_on_off(original.screen_on),
            actual_before=_on_off(before.screen_on),
        )


def with_screen_after(states: Iterable[ControlState], after: Condition | None) -> Iterator[ControlState]:
    """Yield all control states, those of the screen with the values read back right after the run."""
    actual_by_name = {} if after is None else {STAY_AWAKE: after.stay_awake, SCREEN: after.screen_on}
    for state in states:
        is_seen = state.name in OBSERVED_CONTROLS
        yield replace(state, actual_after=_on_off(actual_by_name.get(state.name))) if is_seen else state


def _on_off(is_on: bool | None) -> str | None:
    return None if is_on is None else "on" if is_on else "off"
