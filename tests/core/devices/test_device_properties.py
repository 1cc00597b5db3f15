"""Who may have work, and what is fit to measure: pure predicates, over everything there can be."""

from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import DeviceId
from farm.core.checks.failures import SUSPICIOUS_FAILURES, is_suspicious
from farm.core.devices.condition import Condition, Gates, ThermalStatus, closed_gates
from farm.core.devices.device import Admin, Blocker, DeviceState, Health, Presence, blockers
from farm.core.errors import Blame

READY = DeviceState(
    device_id=DeviceId("phone-1"),
    session_live=True,
    presence=Presence.ONLINE,
    health=Health.GOOD,
    admin=Admin.ACTIVE,
    busy=False,
    fence=3,
    cleaned_fence=3,
)
BOOLS = (False, True)


@cache
def states() -> tuple[DeviceState, ...]:
    """Return every state that a device can be in."""
    return tuple(
        DeviceState(
            device_id=DeviceId("phone-1"),
            session_live=live,
            presence=presence,
            health=health,
            admin=admin,
            busy=busy,
            fence=3,
            cleaned_fence=cleaned,
            cpu_busy=cpu_busy,
            reserved=reserved,
            device_action=device_action,
            host_draining=drains,
            host_full=full,
        )
        for live, presence, health, admin, busy, cleaned, cpu_busy, reserved, device_action, drains, full in (
            product(BOOLS, Presence, Health, Admin, BOOLS, (2, 3, 4), BOOLS, BOOLS, BOOLS, BOOLS, BOOLS)
        )
    )


def is_fit(state: DeviceState, *, check: bool) -> bool:
    """The sentence of DESIGN §5, word for word."""
    return (
        state.session_live
        and state.presence is Presence.ONLINE
        and (check or state.health is Health.GOOD)
        and state.admin is Admin.ACTIVE
        and not state.busy
        and state.cleaned_fence >= state.fence
        and not state.cpu_busy
        and not state.reserved
        and not state.device_action
        and not state.host_draining
        and not state.host_full
    )


@pytest.mark.parametrize("check", BOOLS)
@pytest.mark.invariant("I7", "I14", "I18")
def test_a_device_is_schedulable_exactly_when_every_condition_holds(check: bool) -> None:
    for state in states():
        assert (not blockers(state, check=check)) == is_fit(state, check=check), state


def test_what_may_run_a_benchmark_may_run_a_check() -> None:
    for state in states():
        assert set(blockers(state, check=True)) <= set(blockers(state, check=False))


def test_every_blocker_can_be_met() -> None:
    met = {blocker for state in states() for blocker in blockers(state, check=False)}
    assert met == set(Blocker)


@pytest.mark.parametrize(
    ("change", "blocker"),
    [
        ({"session_live": False}, Blocker.SESSION_NOT_LIVE),
        ({"presence": Presence.BOOTING}, Blocker.NOT_ONLINE),
        ({"health": Health.SUSPECT}, Blocker.HEALTH_SUSPECT),
        ({"admin": Admin.CORDONED}, Blocker.CORDONED),
        ({"busy": True}, Blocker.BUSY),
        ({"busy": True, "cpu_busy": True}, Blocker.BUSY),
        ({"device_action": True, "cpu_busy": True}, Blocker.DEVICE_ACTION),
        ({"reserved": True}, Blocker.RESERVED),
        ({"cleaned_fence": 2}, Blocker.NOT_CLEANED),
        ({"cpu_busy": True}, Blocker.CPU_SHARED),
        ({"host_draining": True}, Blocker.HOST_DRAINING),
        ({"host_full": True}, Blocker.HOST_FULL),
        ({"host_full": True, "busy": True}, Blocker.BUSY),
    ],
)
def test_one_thing_in_the_way_is_named_alone(change: dict[str, object], blocker: Blocker) -> None:
    assert blockers(replace(READY, **change), check=False) == [blocker]


BLAMES = st.lists(st.one_of(st.none(), st.sampled_from(Blame)), max_size=5)


@given(recent=BLAMES)
@pytest.mark.invariant("I15")
def test_a_phone_is_suspicious_by_its_own_failures_alone(recent: list[Blame | None]) -> None:
    assert is_suspicious(recent) == (recent.count(Blame.DEVICE) >= SUSPICIOUS_FAILURES)
    others = [None if blame is Blame.DEVICE else blame for blame in recent]
    assert not is_suspicious(others)


NOW = datetime(2026, 11, 20, tzinfo=UTC)
CONDITIONS = st.builds(
    Condition,
    taken_at=st.just(NOW),
    thermal_status=st.one_of(st.none(), st.sampled_from(ThermalStatus)),
    skin_c=st.one_of(st.none(), st.floats(-40, 120)),
    battery_level_pct=st.one_of(st.none(), st.integers(0, 100)),
    storage_free_bytes=st.one_of(st.none(), st.integers(0, 2**40)),
)
GATES = st.builds(
    Gates,
    max_thermal_status=st.sampled_from(ThermalStatus),
    max_skin_c=st.floats(0, 100),
    min_battery_pct=st.integers(0, 100),
    min_storage_bytes=st.integers(0, 2**40),
)
MEASURED = ("thermal_status", "skin_c", "battery_level_pct", "storage_free_bytes")


@given(condition=CONDITIONS, gates=GATES)
def test_each_gate_is_shut_by_its_own_value_alone(condition: Condition, gates: Gates) -> None:
    shut = closed_gates(condition, gates)
    one_by_one = [
        closed_gates(Condition(taken_at=NOW, **{name: getattr(condition, name)}), gates) for name in MEASURED
    ]
    assert shut == [words for each in one_by_one for words in each]
    assert all(len(each) <= 1 for each in one_by_one)


@given(gates=GATES)
def test_a_phone_that_says_nothing_passes_every_gate(gates: Gates) -> None:
    assert closed_gates(Condition(taken_at=NOW), gates) == []


@given(condition=CONDITIONS, gates=GATES)
def test_a_value_at_the_limit_passes(condition: Condition, gates: Gates) -> None:
    at_limit = replace(
        condition,
        thermal_status=gates.max_thermal_status,
        skin_c=gates.max_skin_c,
        battery_level_pct=gates.min_battery_pct,
        storage_free_bytes=gates.min_storage_bytes,
    )
    assert closed_gates(at_limit, gates) == []


def test_every_value_that_decides_is_a_field_of_the_condition() -> None:
    assert set(MEASURED) <= {field.name for field in fields(Condition)}
