from dataclasses import replace
from datetime import UTC, datetime

import pytest

from farm.core.devices.condition import Condition, CpuPolicy, Gates, ThermalStatus, closed_gates
from farm.core.devices.controls import Controls, ControlState, Screen
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.throttling import throttling_reasons

GHZ = 10**9


def policy(name: str = "policy4", *, limit_ghz: float = 2.0, high_ms: int = 0, low_ms: int = 0) -> CpuPolicy:
    return CpuPolicy(
        name=name,
        cores=(int(name.removeprefix("policy")),),
        max_hz=round(limit_ghz * GHZ),
        hardware_max_hz=2 * GHZ,
        time_in_state_ms={GHZ: low_ms, 2 * GHZ: high_ms},
    )


def look(*cpus: CpuPolicy, uptime_s: float = 100.0, status: ThermalStatus | None = None) -> Condition:
    return Condition(
        taken_at=datetime(2031, 2, 3, tzinfo=UTC),
        boot_id="b",
        uptime_s=uptime_s,
        thermal_status=status,
        cpus=cpus,
    )


def ran(before: Condition, after: Condition, *, cpu_s: float | None = 9.5) -> Evidence:
    ended = ExitRecord(code=0, duration_s=10.0, cpu_s=cpu_s)
    return Evidence(fence=1, before=before, after=after, exit=ended)


def said(evidence: Evidence, gates: Gates | None = None) -> list[str]:
    return list(throttling_reasons(evidence, gates or Gates()))


def test_a_clock_that_was_limited_shows_it() -> None:
    limited = ran(look(policy()), look(policy(limit_ghz=1.5), uptime_s=111))
    assert said(limited) == ["policy4 is limited to 1.50 of 2.00 GHz after the run"]
    assert said(limited, Gates(full_clocks=False)) == []


def test_a_limit_within_the_margin_makes_no_difference() -> None:
    assert said(ran(look(policy()), look(policy(limit_ghz=1.97), uptime_s=111))) == []


def test_a_limit_that_a_control_set_is_meant_so() -> None:
    meant = ControlState(name="policy4.max_hz", requested="1500000000", actual_before="1500000000")
    evidence = ran(look(policy()), look(policy(limit_ghz=1.5), uptime_s=111))
    assert said(replace(evidence, controls=(meant,))) == []


def test_a_busy_run_at_low_clocks_shows_it_though_no_limit_is_left() -> None:
    before = look(policy(), policy("policy0"))
    after = look(policy(high_ms=1000, low_ms=9000), policy("policy0", low_ms=10_000), uptime_s=110.5)
    assert said(ran(before, after)) == [
        "the run kept the CPU busy, and no clock was near its maximum for long: "
        "policy4 for 10% of the time, at least 50%"
    ]


@pytest.mark.parametrize(
    "evidence",
    [
        # One cluster was high: the run may have been there.
        ran(look(policy()), look(policy(high_ms=9000, low_ms=1000), uptime_s=110.5)),
        # It waited, for another accelerator say.
        ran(look(policy()), look(policy(low_ms=10_000), uptime_s=110.5), cpu_s=2.0),
        ran(look(policy()), look(policy(low_ms=10_000), uptime_s=110.5), cpu_s=None),
        # The looks lie too far apart.
        ran(look(policy()), look(policy(low_ms=30_000), uptime_s=130.0)),
        # The counters went back: another boot, or a policy that was made anew.
        ran(look(policy(low_ms=90_000)), look(policy(low_ms=10_000), uptime_s=110.5)),
        ran(look(), look(uptime_s=110.5)),
    ],
)
def test_what_shows_nothing_is_not_held_against_a_run(evidence: Evidence) -> None:
    assert said(evidence) == []


def test_only_the_cores_that_a_run_was_bound_to_tell_of_it() -> None:
    before = look(policy(), policy("policy0"))
    after = look(policy(high_ms=9000), policy("policy0", low_ms=9000), uptime_s=110.5)
    bound = ControlState(name="cores", requested="0", actual_before="0")
    assert said(ran(before, after)) == []
    assert len(said(replace(ran(before, after), controls=(bound,)))) == 1


def test_gates_wait_for_clocks_that_are_limited() -> None:
    hot = look(policy(limit_ghz=1.2))
    assert closed_gates(hot, Gates()) == ["policy4 is limited to 1.20 of 2.00 GHz"]
    assert closed_gates(hot, Gates(full_clocks=False)) == []


@pytest.mark.parametrize(
    ("wanted", "is_on", "shut"),
    [
        (Screen.ON, False, ["the screen is off, it must be on"]),
        (Screen.OFF, True, ["the screen is on, it must be off"]),
        (Screen.LEAVE, False, []),
        (Screen.ON, None, []),
        (Screen.ON, True, []),
    ],
)
def test_a_screen_that_is_not_as_it_is_wanted_keeps_a_run_back(
    wanted: Screen, is_on: bool | None, shut: list[str]
) -> None:
    assert closed_gates(replace(look(), screen_on=is_on), Gates(), Controls(screen=wanted)) == shut
