"""Attempts on phones that others can reach stop before the farm could give the phones away."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.active_attempts import ActiveAttempts
from agents.link.lease import STOP_S, Lease, LeaseEndedError, LeaseMonitor, overdue_attempts
from farm.core.base.ids import AttemptId, DeviceId
from farm.core.jobs.attempt import AttemptState
from tests.support.agents.factories import entry, observation
from tests.support.fake_clock import FakeClock

PHONE = DeviceId("phone-1")
#: As a farm has it by default.
LOST_AFTER_S = 300.0


@pytest.mark.fault(37, 38)
@pytest.mark.parametrize(
    ("serial", "stops"),
    [
        ("phone-1", False),
        ("127.0.0.1:5555", False),
        ("[::1]:5555", False),
        ("localhost:5555", False),
        ("10.0.0.7:5555", True),
        ("[fd00::7]:5555", True),
        ("phone.lab:5555", True),
        ("adb-phone-1-abc._adb-tls-connect._tcp", True),
    ],
)
def test_only_an_attempt_on_a_phone_that_another_host_can_reach_stops_automatically(
    serial: str, stops: bool
) -> None:
    held = [entry(1, phase=AttemptState.MEASURING)]
    lease = Lease(asked_at_s=0.0, lost_after_s=LOST_AFTER_S)
    found = overdue_attempts(held, {PHONE: observation(serial)}, lease, now_s=LOST_AFTER_S)
    assert found == ([AttemptId(1)] if stops else [])


@pytest.mark.fault(25, 37)
@pytest.mark.invariant("I8")
@given(asked_at_s=st.floats(0, 1e6), lost_after_s=st.floats(1, 1e5))
def test_there_is_time_to_stop_and_clean_up_before_the_farm_gives_the_phone_away(
    asked_at_s: float, lost_after_s: float
) -> None:
    lease = Lease(asked_at_s=asked_at_s, lost_after_s=lost_after_s)
    left_s = asked_at_s + lost_after_s - lease.stop_at_s
    assert left_s >= min(STOP_S, lost_after_s / 2) - 1e-3
    assert lease.stop_at_s >= asked_at_s


@pytest.mark.parametrize("phase", [AttemptState.REPORTING, AttemptState.RETURNED])
def test_what_is_over_is_not_stopped(phase: AttemptState) -> None:
    lease = Lease(asked_at_s=0.0, lost_after_s=LOST_AFTER_S)
    devices = {PHONE: observation("10.0.0.7:5555")}
    assert overdue_attempts([entry(1, phase=phase)], devices, lease, now_s=10 * LOST_AFTER_S) == []


@pytest.mark.fault(37, 49, 50)
def test_only_time_without_an_answer_ends_a_lease_and_no_clock_that_jumps() -> None:
    clock, active, stopped = FakeClock(), ActiveAttempts(), list[AttemptId]()
    active.add(entry(1, phase=AttemptState.MEASURING))

    def stop(attempt_id: AttemptId, error: LeaseEndedError) -> None:
        stopped.append(attempt_id)

    monitor = LeaseMonitor(
        active=active, devices=lambda: {PHONE: observation("10.0.0.7:5555")}, stop=stop, clock=clock
    )
    clock.advance(10 * LOST_AFTER_S)
    monitor.run_once()
    jumps = Random(1)
    for _ in range(100):
        monitor.record(clock.monotonic(), LOST_AFTER_S)
        clock.jump(jumps.choice([-86400, 86400]))
        clock.advance(LOST_AFTER_S - STOP_S - 1)
        monitor.run_once()
    assert stopped == []
    clock.advance(2)
    monitor.run_once()
    assert stopped == [AttemptId(1)]


def test_a_farm_that_says_nothing_of_leases_is_never_waited_out() -> None:
    clock, active, stopped = FakeClock(), ActiveAttempts(), list[AttemptId]()
    active.add(entry(1, phase=AttemptState.MEASURING))
    monitor = LeaseMonitor(
        active=active,
        devices=lambda: {PHONE: observation("10.0.0.7:5555")},
        stop=lambda attempt_id, error: stopped.append(attempt_id),
        clock=clock,
    )
    monitor.record(clock.monotonic(), None)
    clock.advance(1e6)
    monitor.run_once()
    assert stopped == []
