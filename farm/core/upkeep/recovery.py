"""The ladder of recovery: what to try next with a phone that is not there for work. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from farm.core.base.bounds import AtMost, Note
from farm.core.devices.device import Presence


class RecoveryStep(StrEnum):
    """The recovery actions, the gentlest first."""

    #: Ask it again.
    REPROBE = "reprobe"
    #: Have adb drop its connection and make another.
    RECONNECT = "reconnect"
    #: End what is left of our runs on it.
    CLEAN = "clean"
    #: Restart it.
    REBOOT = "reboot"
    #: Switch the power of its port off and on.
    POWER_CYCLE = "power_cycle"
    #: No step is left but to call a person.
    HUMAN = "human"


class FailureMode(StrEnum):
    """The failure of a device, as far as recovery can help."""

    #: adb lists it, and it does not answer.
    OFFLINE = "offline"
    BOOTING = "booting"
    WRONG_MODE = "wrong_mode"
    #: adb lists it no longer.
    ABSENT = "absent"
    #: It answers, and something that a run left remains after every clean-up.
    UNCLEAN = "unclean"


#: A phone's own adbd serves the first three; to restart it, it must be able to take the order.
_LADDERS: Mapping[FailureMode, tuple[RecoveryStep, ...]] = {
    FailureMode.OFFLINE: tuple(RecoveryStep),
    FailureMode.BOOTING: (RecoveryStep.REBOOT, RecoveryStep.POWER_CYCLE, RecoveryStep.HUMAN),
    FailureMode.WRONG_MODE: (RecoveryStep.REBOOT, RecoveryStep.POWER_CYCLE, RecoveryStep.HUMAN),
    FailureMode.ABSENT: (RecoveryStep.POWER_CYCLE, RecoveryStep.HUMAN),
    # Its runs are ended again and again already, and a phone with a battery survives its charger.
    FailureMode.UNCLEAN: (RecoveryStep.REBOOT, RecoveryStep.HUMAN),
}
_ORDER = tuple(RecoveryStep)
#: They leave whatever runs on the phone alone.
HARMLESS = frozenset({RecoveryStep.REPROBE, RecoveryStep.RECONNECT})
#: At most so many phones of a host at once are away for one of these.
RESTARTS = frozenset({RecoveryStep.REBOOT, RecoveryStep.POWER_CYCLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRules:
    """The waits and permissions of recovery. Times in seconds."""

    may_reboot: bool = False
    may_switch_power: bool = False
    max_concurrent_restarts: int = 1
    #: Of a phone that is offline: before the first step, and between two.
    offline_s: float = 15.0
    #: Android takes so long to start at most, after an update say.
    booting_s: float = 300.0
    #: A person may be at work in recovery.
    wrong_mode_s: float = 120.0
    #: It may only be carried to another port.
    absent_s: float = 120.0
    unclean_s: float = 15.0
    #: Between two steps of any phone.
    step_interval_s: float = 30.0
    #: After a restart, before it has failed.
    restart_s: float = 240.0
    #: A phone that begins to start so often in one recovery episode restarts without us.
    boot_loop: int = 3
    #: We restart a phone once in so long, and start another episode after a call for a person; doubled each
    #: time, up to the second.
    cooldown_s: float = 3600.0
    max_cooldown_s: float = 86400.0


DEFAULT_RULES = RecoveryRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryAttempt:
    """One step that was taken, and what came of it at once."""

    step: RecoveryStep
    at: datetime
    result: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The progress of a recovery, as shown to people and the farm."""

    failure_mode: FailureMode
    #: In this episode, the first first.
    tries: Annotated[tuple[RecoveryAttempt, ...], AtMost(100)] = ()
    #: The next step; None: it waits.
    next: RecoveryStep | None = None
    #: The end was reached, and a person must see to the phone.
    failed: bool = False

    @property
    def needs_approval(self) -> bool:
        """Tell whether the next step may disturb a user, so that the farm has to approve it."""
        return self.next is not None and self.next not in HARMLESS


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryEpisode:
    """The state of one recovery, on the agent's own clock.

    Invariant: `steps`, those taken, only grows within an episode, from one step to a higher one.
    """

    failure_mode: FailureMode
    #: Since when it is so, without a break or another failure mode.
    since_s: float
    steps: tuple[RecoveryStep, ...] = ()
    last_step_at_s: float | None = None
    #: The number of times it began to start.
    boots: int = 0


def failure_mode(presence: Presence, *, is_unclean: bool) -> FailureMode | None:
    """Return the failure that recovery may fix; None for a healthy device, or one its owner must unlock."""
    match presence:
        case Presence.ONLINE:
            return FailureMode.UNCLEAN if is_unclean else None
        case Presence.OFFLINE:
            return FailureMode.OFFLINE
        case Presence.BOOTING:
            return FailureMode.BOOTING
        case Presence.WRONG_MODE:
            return FailureMode.WRONG_MODE
        case Presence.ABSENT:
            return FailureMode.ABSENT
        case Presence.UNAUTHORIZED | Presence.NO_PERMISSION:
            return None


def next_step(episode: RecoveryEpisode, rules: RecoveryRules, *, now_s: float) -> RecoveryStep | None:
    """Return the step that is due now; None while it is too early, or after the last."""
    step = _next_allowed_step(episode, rules)
    return step if step is not None and now_s >= _due_s(episode, rules) else None


def episode_cooldown_s(escalations: int, rules: RecoveryRules) -> float:
    """Return how long to wait after the n-th escalation to an operator in a row, in seconds."""
    return min(rules.max_cooldown_s, rules.cooldown_s * 2.0 ** min(max(escalations - 1, 0), 30))


def _next_allowed_step(episode: RecoveryEpisode, rules: RecoveryRules) -> RecoveryStep | None:
    highest = max((_ORDER.index(step) for step in episode.steps), default=-1)
    ladder = (step for step in _LADDERS[episode.failure_mode] if _ORDER.index(step) > highest)
    return next((step for step in ladder if _is_allowed(step, episode, rules)), None)


def _is_allowed(step: RecoveryStep, episode: RecoveryEpisode, rules: RecoveryRules) -> bool:
    if step is RecoveryStep.REBOOT:
        return rules.may_reboot and episode.boots < rules.boot_loop
    if episode.failure_mode is FailureMode.ABSENT and not rules.may_switch_power:
        # It may be in a person's hand: a person is called for that by its duration only.
        return False
    return step is not RecoveryStep.POWER_CYCLE or rules.may_switch_power


def _due_s(episode: RecoveryEpisode, rules: RecoveryRules) -> float:
    wait_s = {
        FailureMode.OFFLINE: rules.offline_s,
        FailureMode.BOOTING: rules.booting_s,
        FailureMode.WRONG_MODE: rules.wrong_mode_s,
        FailureMode.ABSENT: rules.absent_s,
        FailureMode.UNCLEAN: rules.unclean_s,
    }[episode.failure_mode]
    if episode.last_step_at_s is None:
        return episode.since_s + wait_s
    pause_s = rules.restart_s if episode.steps[-1] in RESTARTS else rules.step_interval_s
    # A phone that was connected again counts as booting until its probe has answered.
    return max(episode.last_step_at_s + pause_s, episode.since_s + wait_s)


def observe(episode: RecoveryEpisode | None, now_is: FailureMode, *, now_s: float) -> RecoveryEpisode:
    """Return the episode after another observation; its steps stay taken, whatever the device does."""
    begins = now_is is FailureMode.BOOTING and (episode is None or episode.failure_mode is not now_is)
    if episode is None:
        return RecoveryEpisode(failure_mode=now_is, since_s=now_s, boots=int(begins))
    if episode.failure_mode is now_is:
        return episode
    return replace(episode, failure_mode=now_is, since_s=now_s, boots=episode.boots + begins)


def record_step(episode: RecoveryEpisode, step: RecoveryStep, *, now_s: float) -> RecoveryEpisode:
    """Return the episode after a step, whatever its result."""
    return replace(episode, steps=(*episode.steps, step), last_step_at_s=now_s)


def scale_waits(rules: RecoveryRules, factor: float) -> RecoveryRules:
    """Return the rules with every wait multiplied by a factor."""
    waits = {
        wait.name: getattr(rules, wait.name) * factor for wait in fields(rules) if wait.name.endswith("_s")
    }
    return replace(rules, **waits)
