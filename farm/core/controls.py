"""What is set on a phone for a run, and put back afterwards."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Screen(StrEnum):
    """How the screen is to be during a run."""

    ON = "on"
    OFF = "off"
    #: As it is found.
    LEAVE = "leave"


class CoreKind(StrEnum):
    """Which cores a run is bound to, by what the phone's clusters are; a list like `4-7` says it exactly."""

    ANY = "any"
    LITTLE = "little"
    BIG = "big"
    PRIME = "prime"


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What a plan wants set. Empty or None: left as it is found."""

    stay_awake: bool = True
    screen: Screen = Screen.ON
    #: A CoreKind, or a list of cores as taskset writes it: `4-7`, `0,2`.
    cores: str = CoreKind.ANY
    #: These need root.
    governor: str = ""
    min_hz: int | None = None
    max_hz: int | None = None
    #: Cores that are to be online, as a list; all others are switched off.
    online: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState:
    """One thing that was to be set, as read back from the phone."""

    #: `screen`, `cores`, `policy0.governor`, `policy0.max_hz`.
    name: str
    asked: str
    #: What there was before; None where the phone does not say.
    before: str | None = None
    #: Read back right before the run, and right after it.
    held_before: str | None = None
    held_after: str | None = None
    #: Why it could not be set or read, in words.
    problem: str | None = None


class ControlLevel(IntEnum):
    """How much of what makes numbers differ was in our hands; those of different levels are not compared."""

    #: Nothing but screen and wakefulness.
    FREE = 0
    #: The run was bound to cores.
    PINNED = 1
    #: Clocks were fixed, too.
    FIXED = 2
