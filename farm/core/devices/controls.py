"""Controls: device settings for one run, restored afterwards."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum, StrEnum

from farm.core.base.bounds import LongText, Note, Word
from farm.core.base.cpu_list import core_list
from farm.core.devices.device import Cluster


class Screen(StrEnum):
    """The screen state during a run."""

    ON = "on"
    OFF = "off"
    #: Left unchanged.
    LEAVE = "leave"


class CoreKind(StrEnum):
    """The cores a run is bound to, by cluster; a list like `4-7` names them exactly."""

    ANY = "any"
    LITTLE = "little"
    BIG = "big"
    PRIME = "prime"


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The controls of a plan. Empty or None: left unchanged."""

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

    @property
    def root_controls(self) -> tuple[str, ...]:
        """Return the controls that need root."""
        return tuple(name for name in ("governor", "min_hz", "max_hz", "online") if getattr(self, name))

    @property
    def needs_root(self) -> bool:
        """Tell whether any control needs root."""
        return bool(self.root_controls)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState:
    """One thing that was to be set, as read back from the phone."""

    #: `screen`, `stay_awake`, `cores`, `policy0.governor`, `policy0.max_hz`.
    name: Word
    requested: Word
    #: The value before; None where the device does not report it.
    before: LongText | None = None
    #: Read back right before the run, and right after it.
    actual_before: LongText | None = None
    actual_after: LongText | None = None
    #: The reason why it could not be set or read, in words.
    problem: Note | None = None


class ControlLevel(IntEnum):
    """The extent of control over a device; results of different levels are not compared."""

    #: Only the screen.
    FREE = 0
    #: The run was bound to cores.
    PINNED = 1
    #: Clocks were fixed, whatever cores it ran on.
    FIXED = 2

    @property
    def word(self) -> str:
        """Return the level in a word: `free`, `pinned` or `fixed`."""
        return self.name.lower()


#: Governors that keep to one clock.
_FIXING = frozenset({"performance", "powersave", "userspace"})
#: The name of the state that says which cores a run was bound to.
CORES = "cores"


def non_default_controls(controls: Controls) -> dict[str, str | int | bool]:
    """Return the controls that differ from those of every run, as settings `control.*`."""
    default = Controls()
    return {
        f"control.{field.name}": getattr(controls, field.name)
        for field in fields(Controls)
        if getattr(controls, field.name) != getattr(default, field.name)
    }


def requested_cores(controls: Controls, clusters: Sequence[Cluster]) -> tuple[int, ...] | None:
    """Return the cores that a run is bound to on a device; empty for any.

    The slowest cluster is `little`. With three clusters or more the fastest is `prime`, and all between are
    `big`; with two the faster is `big`. None: the device has no cores of that kind, or does not report them.
    """
    match controls.cores:
        case CoreKind.ANY:
            return ()
        case kind if kind in set(CoreKind) and any(cluster.max_hz is None for cluster in clusters):
            # The numbering of cores proves nothing: some chips count the fast ones first.
            return None
        case CoreKind.LITTLE:
            chosen = clusters[:1] if len(clusters) > 1 else ()
        case CoreKind.BIG:
            chosen = clusters[1 : max(2, len(clusters) - 1)]
        case CoreKind.PRIME:
            chosen = clusters[-1:] if len(clusters) > 2 else ()
        case cores:
            return core_list(cores)
    return tuple(sorted(core for cluster in chosen for core in cluster.cores)) or None


def control_deviations(states: Iterable[ControlState]) -> list[str]:
    """Describe controls that were not as requested before or after the run; unreadable ones pass."""
    return [words for state in states if (words := _deviation(state)) is not None]


def missing_controls(controls: Controls, states: Iterable[ControlState]) -> list[str]:
    """Describe controls that were requested and never set: earlier agents ignore some, and a device
    that shows cores to switch may show no clocks.
    """
    set_names = {state.name.rpartition(".")[2] for state in states}
    missing = []
    if controls.cores != CoreKind.ANY and CORES not in set_names:
        missing.append(f"the run was not bound to {controls.cores} cores")
    if missing_root_controls := [name for name in controls.root_controls if name not in set_names]:
        missing.append(f"clocks and cores were not set: {', '.join(missing_root_controls)}")
    return missing


def control_level(states: Sequence[ControlState]) -> ControlLevel:
    """Return how much was controlled, by what was read back right before the run."""
    actual = {state.name: state.actual_before for state in states if state.actual_before == state.requested}
    if _is_fixed(states, actual):
        return ControlLevel.FIXED
    return ControlLevel.PINNED if CORES in actual else ControlLevel.FREE


def _is_fixed(states: Sequence[ControlState], actual: Mapping[str, str]) -> bool:
    """Tell whether every policy that was set keeps to one clock."""
    policies = {state.name.partition(".")[0] for state in states if state.name.startswith("policy")}
    return bool(policies) and all(
        actual.get(f"{policy}.governor") in _FIXING
        or (f"{policy}.min_hz" in actual and actual[f"{policy}.min_hz"] == actual.get(f"{policy}.max_hz"))
        for policy in policies
    )


def _deviation(state: ControlState) -> str | None:
    if state.problem is not None:
        return f"{state.name} could not be set to {state.requested}: {state.problem}"
    if state.actual_before is not None and state.actual_before != state.requested:
        return f"{state.name} is {state.actual_before}, {state.requested} was asked for"
    if state.actual_after is not None and state.actual_after != state.requested:
        return f"{state.name} was {state.actual_after} after the run, {state.requested} was asked for"
    return None
