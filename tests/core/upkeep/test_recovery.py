"""The ladder of recovery: which step comes next, and when."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.devices.device import Presence
from farm.core.upkeep.recovery import (
    DEFAULT_RULES,
    RESTARTS,
    FailureMode,
    RecoveryEpisode,
    RecoveryRules,
    RecoveryStep,
    episode_cooldown_s,
    failure_mode,
    next_step,
    observe,
    record_step,
)

ALL = replace(DEFAULT_RULES, may_reboot=True, may_switch_power=True)
DAY_S = 86400.0


def climbed(what: FailureMode, rules: RecoveryRules = ALL) -> list[tuple[RecoveryStep, float]]:
    """All steps of a phone that nothing helps, with when they were due, looked at once a second."""
    episode, found = RecoveryEpisode(failure_mode=what, since_s=0.0), list[tuple[RecoveryStep, float]]()
    for now in range(3600):
        if (step := next_step(episode, rules, now_s=float(now))) is not None:
            found.append((step, float(now)))
            episode = record_step(episode, step, now_s=float(now))
    return found


@pytest.mark.parametrize(
    ("what", "steps"),
    [
        (FailureMode.OFFLINE, list(RecoveryStep)),
        (FailureMode.BOOTING, [RecoveryStep.REBOOT, RecoveryStep.POWER_CYCLE, RecoveryStep.HUMAN]),
        (FailureMode.WRONG_MODE, [RecoveryStep.REBOOT, RecoveryStep.POWER_CYCLE, RecoveryStep.HUMAN]),
        (FailureMode.ABSENT, [RecoveryStep.POWER_CYCLE, RecoveryStep.HUMAN]),
        (FailureMode.UNCLEAN, [RecoveryStep.REBOOT, RecoveryStep.HUMAN]),
    ],
)
def test_each_ailment_has_its_own_steps(what: FailureMode, steps: list[RecoveryStep]) -> None:
    assert [step for step, _ in climbed(what)] == steps


def test_what_is_not_allowed_is_left_out() -> None:
    assert [step for step, _ in climbed(FailureMode.OFFLINE, DEFAULT_RULES)] == [
        RecoveryStep.REPROBE,
        RecoveryStep.RECONNECT,
        RecoveryStep.CLEAN,
        RecoveryStep.HUMAN,
    ]


def test_a_phone_that_is_gone_is_no_ones_concern_where_no_port_can_be_switched() -> None:
    assert climbed(FailureMode.ABSENT, replace(ALL, may_switch_power=False)) == []


def test_after_a_restart_a_phone_has_time_to_start() -> None:
    at_by_step = dict(climbed(FailureMode.WRONG_MODE))
    waited_s = at_by_step[RecoveryStep.POWER_CYCLE] - at_by_step[RecoveryStep.REBOOT]
    assert waited_s == ALL.restart_s


def test_android_has_five_minutes_to_start() -> None:
    assert climbed(FailureMode.BOOTING)[0] == (RecoveryStep.REBOOT, ALL.booting_s)


@pytest.mark.fault(5)
def test_a_phone_that_restarts_unexpectedly_is_not_restarted() -> None:
    episode = RecoveryEpisode(failure_mode=FailureMode.BOOTING, since_s=0.0, boots=ALL.boot_loop)
    assert next_step(episode, ALL, now_s=DAY_S) is RecoveryStep.POWER_CYCLE


@pytest.mark.fault(5)
def test_starts_are_counted_over_the_whole_recovery_episode() -> None:
    episode = None
    for now, what in enumerate(
        [FailureMode.OFFLINE, FailureMode.BOOTING, FailureMode.BOOTING, FailureMode.ABSENT] * 2
    ):
        episode = observe(episode, what, now_s=float(now))
    assert episode is not None
    assert episode.boots == 2


def test_a_phone_that_is_connected_again_is_not_given_up_while_it_is_probed() -> None:
    steps = (RecoveryStep.REPROBE, RecoveryStep.RECONNECT)
    episode = RecoveryEpisode(failure_mode=FailureMode.OFFLINE, since_s=0.0, steps=steps, last_step_at_s=9.0)
    probed = observe(episode, FailureMode.BOOTING, now_s=10.0)
    assert next_step(probed, DEFAULT_RULES, now_s=10.0 + DEFAULT_RULES.step_interval_s) is None


@pytest.mark.parametrize("presence", [Presence.UNAUTHORIZED, Presence.NO_PERMISSION])
@pytest.mark.fault(6)
def test_what_only_a_person_can_allow_starts_no_recovery_episode(presence: Presence) -> None:
    assert failure_mode(presence, is_unclean=True) is None


def test_a_phone_that_is_online_and_clean_is_well() -> None:
    assert failure_mode(Presence.ONLINE, is_unclean=False) is None
    assert failure_mode(Presence.ONLINE, is_unclean=True) is FailureMode.UNCLEAN


def test_a_phone_that_nothing_helped_is_tried_with_increasing_back_off() -> None:
    waits = [episode_cooldown_s(times, DEFAULT_RULES) for times in range(1, 40)]
    assert waits[:3] == [3600.0, 7200.0, 14400.0]
    assert max(waits) == waits[-1] == DAY_S


@given(st.lists(st.tuples(st.sampled_from(FailureMode), st.floats(0, 600)), max_size=60))
def test_whatever_a_phone_does_steps_go_up_and_leave_time_between(
    moves: list[tuple[FailureMode, float]],
) -> None:
    episode, now_s, taken = None, 0.0, list[tuple[RecoveryStep, float]]()
    for what, later_s in moves:
        now_s += later_s
        episode = observe(episode, what, now_s=now_s)
        if (step := next_step(episode, ALL, now_s=now_s)) is not None:
            episode = record_step(episode, step, now_s=now_s)
            taken.append((step, now_s))
    order = list(RecoveryStep)
    for (step, at_s), (then, then_s) in pairwise(taken):
        assert order.index(step) < order.index(then)
        assert then_s - at_s >= (ALL.restart_s if step in RESTARTS else ALL.step_interval_s) - 1e-6
