"""What a matrix sets on phones: planned, kept with its measurements, and a series of its own."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from farm.core.devices.condition import Condition, ThermalStatus
from farm.core.devices.controls import Controls, ControlState
from farm.core.errors import ControlImpossible
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence, RunError
from farm.services.jobs.pending_reasons import job_waiting
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phase, plan_of

BOUND = ControlState(name="cores", requested="0-1", actual_before="0-1", actual_after="0-1")
COOL = Condition(
    taken_at=datetime(2031, 2, 3, tzinfo=UTC),
    thermal_status=ThermalStatus.NONE,
    battery_level_pct=90,
    battery_c=30.0,
    storage_free_bytes=2**40,
    plugged="usb",
)


def submit(farm: FarmRig, **more: Any) -> None:
    farm.submit(
        axes={"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"},
        devices={"device": "phone-1"},
        baseline=None,
        rounds=1,
        **more,
    )


def bound(assignment: Assignment) -> Evidence:
    evidence = good_evidence(assignment)
    assert evidence.exit is not None
    ended = replace(evidence.exit, cpu_s=0.75)
    return replace(evidence, before=COOL, after=COOL, exit=ended, controls=(BOUND,))


def test_a_plan_has_what_its_matrix_wants_set(farm: FarmRig, host: HostRig) -> None:
    seen: list[Controls] = []

    def note(assignment: Assignment) -> Evidence:
        seen.append(plan_of(assignment).controls)
        return bound(assignment)

    submit(farm, controls={"cores": "1,0", "screen": "off"})
    host.run(note)
    (controls,) = {each for each in seen if each != Controls()}
    assert (controls.cores, controls.screen, controls.governor) == ("0-1", "off", "")


def test_what_was_set_is_kept_and_makes_a_series_of_its_own(farm: FarmRig, host: HostRig) -> None:
    submit(farm)
    host.run()
    submit(farm, controls={"cores": "0-1"})
    host.run(bound)
    free, pinned = farm.rows(
        "SELECT m.control_level, m.cpu_s, m.controls, s.settings, m.series_id FROM measurements m"
        " JOIN series s ON s.series_id = m.series_id ORDER BY m.measurement_id"
    )
    assert (free["control_level"], free["cpu_s"], free["controls"]) == (0, None, None)
    assert (pinned["control_level"], pinned["cpu_s"]) == (1, 0.75)
    assert "control" not in str(free["settings"])
    assert "control.cores" in str(pinned["settings"])
    assert free["series_id"] != pinned["series_id"]


def test_what_a_gate_could_not_see_is_noted_on_the_measurement(farm: FarmRig, host: HostRig) -> None:
    submit(farm)
    host.run(bound)
    (row,) = farm.rows("SELECT quality, notices FROM measurements")
    assert row["quality"] == "valid"
    assert "skin temperature unknown" in str(row["notices"])


@pytest.mark.fault(3)
@pytest.mark.parametrize(("mains", "quality"), [(False, "valid"), (True, "unplugged")])
def test_a_run_whose_phone_was_replugged_is_marked_and_not_valid_where_mains_is_demanded(
    farm: FarmRig, host: HostRig, mains: bool, quality: str
) -> None:
    away_s = [14.2]

    def away_once(assignment: Assignment) -> Evidence:
        return replace(bound(assignment), away_s=away_s.pop() if away_s else 0.0)

    submit(farm, gates={"mains": mains})
    host.run(away_once)
    first, *again = farm.rows("SELECT quality, notices FROM measurements ORDER BY measurement_id")
    assert (first["quality"], len(again)) == (quality, int(mains))
    assert "the phone could not be reached for 14.2 s during the run" in str(first["notices"])


@pytest.mark.fault(47)
def test_a_run_that_lost_its_charger_is_kept_and_its_block_runs_again(farm: FarmRig, host: HostRig) -> None:
    plugs = ["none", "usb"]

    def lost_once(assignment: Assignment) -> Evidence:
        return replace(bound(assignment), after=replace(COOL, plugged=plugs.pop(0)))

    submit(farm, gates={"mains": True})
    host.run(lost_once)
    rows = farm.rows("SELECT quality, quality_reasons FROM measurements ORDER BY measurement_id")
    assert [row["quality"] for row in rows] == ["unplugged", "valid"]
    assert "not plugged in after the run" in str(rows[0]["quality_reasons"])


def test_why_a_job_waits_names_the_gate_that_put_it_off(farm: FarmRig, host: HostRig) -> None:
    submit(farm)
    (assignment,) = host.exchange().assignments
    host.exchange([phase(assignment, AttemptState.RETURNED, "policy4 is limited to 1.20 of 2.00 GHz")])
    why = farm.read(job_waiting, assignment.job_id)
    causes = [why.cause, *(reason.cause for reason in why.reasons)]
    assert "policy4 is limited to 1.20 of 2.00 GHz" in causes


@pytest.mark.fault(46)
def test_a_throttled_run_costs_neither_the_phones_health_nor_a_try(farm: FarmRig, host: HostRig) -> None:
    hot = [ThermalStatus.SEVERE, ThermalStatus.NONE]

    def hot_once(assignment: Assignment) -> Evidence:
        return replace(bound(assignment), after=replace(COOL, thermal_status=hot.pop(0)))

    submit(farm)
    host.run(hot_once)
    rows = farm.rows("SELECT quality FROM measurements ORDER BY measurement_id")
    assert [row["quality"] for row in rows] == ["throttled", "valid"]
    assert {row["health"] for row in farm.rows("SELECT health FROM devices")} == {"good"}
    outcomes = farm.rows("SELECT outcome, blame FROM attempts WHERE outcome IS NOT NULL")
    assert {(row["outcome"], row["blame"]) for row in outcomes} == {("succeeded", None)}


def test_a_phone_that_cannot_be_set_as_asked_ends_the_job_as_unsupported_and_keeps_its_health(
    farm: FarmRig, host: HostRig
) -> None:
    error = ControlImpossible("phone-1 has no prime cores: its clusters are 0-3; 4-7")

    def impossible(assignment: Assignment) -> Evidence:
        failure = RunError(
            code=error.code,
            blame=error.blame,
            transient=error.transient,
            message=error.message,
            hint=error.hint,
        )
        return Evidence(fence=assignment.fence, error=failure)

    submit(farm, controls={"cores": "prime"})
    assert host.run(impossible) == 1
    (job,) = farm.rows("SELECT outcome, code, message FROM jobs WHERE kind = 'benchmark'")
    assert (job["outcome"], job["code"]) == ("unsupported", "device.control_impossible")
    assert "no prime cores" in job["message"]
    assert {row["health"] for row in farm.rows("SELECT health FROM devices")} == {"good"}


@pytest.mark.fault(47)
def test_a_battery_below_the_floor_puts_the_job_off_and_costs_neither_a_try_nor_health(
    farm: FarmRig, host: HostRig
) -> None:
    submit(farm)
    (assignment,) = host.exchange().assignments
    host.exchange([phase(assignment, AttemptState.RETURNED, "battery 9 %, at least 20 %")])
    host.clean(assignment)
    farm.clock.advance(60)
    assert host.run() == 1
    rows = farm.rows(
        "SELECT a.state, a.outcome FROM attempts a JOIN jobs j ON j.job_id = a.job_id"
        " WHERE j.kind = 'benchmark' ORDER BY a.attempt_id"
    )
    assert [(row["state"], row["outcome"]) for row in rows] == [
        ("returned", None),
        ("finished", "succeeded"),
    ]
    assert {row["health"] for row in farm.rows("SELECT health FROM devices")} == {"good"}
