"""A phone's screen and wakefulness as controls: how they were found, and were read back around a run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from farm.core.devices.condition import Condition
from farm.core.devices.controls import Controls, ControlState, Screen

#: Names of states. What else is set on a phone is written down there; these are seen in every look at it.
STAY_AWAKE, SCREEN = "stay_awake", "screen"
SEEN = frozenset({STAY_AWAKE, SCREEN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How a phone was before it was kept awake. None: it does not say."""

    stay_awake: bool | None = None
    screen_on: bool | None = None


def awake_states(controls: Controls, found: Found, before: Condition) -> Iterator[ControlState]:
    """What was set of screen and wakefulness, as the look right before the run shows it."""
    if controls.stay_awake:
        yield ControlState(
            name=STAY_AWAKE,
            asked="on",
            before=_word(found.stay_awake),
            held_before=_word(before.stay_awake),
        )
    if controls.screen is not Screen.LEAVE:
        yield ControlState(
            name=SCREEN,
            asked=controls.screen,
            before=_word(found.screen_on),
            held_before=_word(before.screen_on),
        )


def awake_afterwards(states: Iterable[ControlState], after: Condition | None) -> Iterator[ControlState]:
    """All states, those of screen and wakefulness with what the look right after the run shows."""
    held = {} if after is None else {STAY_AWAKE: after.stay_awake, SCREEN: after.screen_on}
    for state in states:
        is_seen = state.name in SEEN
        yield replace(state, held_after=_word(held.get(state.name))) if is_seen else state


def _word(is_on: bool | None) -> str | None:
    return None if is_on is None else "on" if is_on else "off"
