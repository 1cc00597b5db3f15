"""Energy of runs, from reports to comparisons, and energy that people import."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from farm.core.devices.condition import Condition
from farm.core.errors import Conflict, InvalidInput, MatrixInvalid, NotFound
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Metric
from farm.database.transaction import bind_tx
from farm.services.results.explanations.attempts import attempt_view
from farm.services.results.interchange.energy_import import import_energy
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.matrices.jobs import AttemptView
from farm.wire.documents.results.results import EnergyImport
from tests.phone.condition.test_energy_rails import HAL_2
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, plan_of, torch_output

pytestmark = pytest.mark.usefixtures("both_variants")
#: 2000 inferences of 5 ms.
SAMPLES, SAMPLE_US = 2000, 5000.0
ONE_CELL: dict[str, Any] = {
    "axes": {"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"},
    "baseline": None,
    "rounds": 1,
    "settings": {"iter": SAMPLES},
}
Answer = Callable[[Assignment], Evidence]


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    return farm.healthy_host("virtual-1")


def trace(current: int, *, status: str = "Discharging", charge: int | None = None) -> str:
    """What the sampler writes of a run from 100 to 112 s of uptime, in the phone's units."""
    lines = ["trace 1", "pause 0.5", "start 100.00", "columns current voltage charge status"]
    for place in range(25):
        counter = "-" if charge is None else str(charge - 700 * place)
        lines.append(f"s {100 + place / 2:.2f} {current} 4000000 {counter} {status} .")
    return "\n".join([*lines, "end 112.00"]) + "\n"


def evidence(assignment: Assignment, farm: FarmRig, **changes: Any) -> Evidence:
    if plan_of(assignment).harness == "device_check":
        return good_evidence(assignment)
    unplugged = Condition(taken_at=farm.clock.now(), plugged="none", charging=False)
    return replace(
        Evidence(
            fence=assignment.fence,
            argv=("./program",),
            exit=ExitRecord(code=0, duration_s=12.0),
            stdout=torch_output([SAMPLE_US] * SAMPLES),
            before=unplugged,
            after=unplugged,
        ),
        **changes,
    )


def last_attempt(farm: FarmRig) -> AttemptView:
    (row,) = farm.rows("SELECT max(attempt_id) AS attempt_id FROM measurements")
    return farm.read(attempt_view, row["attempt_id"])


def energy_metrics(view: AttemptView) -> dict[str, Metric]:
    assert view.reading is not None
    return {metric.name: metric for metric in view.reading.metrics if metric.name.endswith("_energy")}


def imported(farm: FarmRig, attempt_id: int, **values: Any) -> AttemptView:
    given = {"joules": 4.0, "boundary": "supply of the phone", "instrument": "power monitor", **values}
    service = bind_tx(import_energy, now=farm.clock.now(), actor="user:ann")
    return farm.write(service, attempt_id, EnergyImport(**given))


@pytest.mark.parametrize(
    ("what", "current", "joules"),
    [
        # 4 V x 0.5 A x 10 s: Linux's unit, that of some drivers, and one that counts a discharge upwards.
        ("microamperes", -500_000, 20.0),
        ("milliamperes", -500, 20.0),
        ("milliamperes, positive", 500, 20.0),
    ],
)
def test_the_battery_gives_joules_for_an_inference(
    farm: FarmRig, host: HostRig, what: str, current: int, joules: float
) -> None:
    farm.submit(**ONE_CELL, energy="battery", metrics=["battery_energy"])
    host.run(lambda assignment: evidence(assignment, farm, trace=trace(current)))
    view = last_attempt(farm)
    assert view.reading is not None
    (energy,) = view.reading.energy
    assert (energy.method, energy.joules) == ("battery", pytest.approx(joules))
    assert energy_metrics(view)["battery_energy"].value == pytest.approx(joules / SAMPLES * 1e3)


def test_a_phone_that_charges_has_no_energy_and_the_reason(farm: FarmRig, host: HostRig) -> None:
    farm.submit(**ONE_CELL, energy="battery")
    host.run(lambda assignment: evidence(assignment, farm, trace=trace(-500_000, status="Charging")))
    view = last_attempt(farm)
    assert view.reading is not None
    assert (view.reading.energy, energy_metrics(view)) == ((), {})
    assert any("no energy: the battery was not discharging" in note for note in view.notices)


def test_rails_are_read_around_the_run_and_their_difference_is_its_energy(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(**ONE_CELL, energy="rails", metrics=["rails_energy"])
    after = HAL_2.replace("912345.67", "916345.67").replace("uptime 5211.37", "uptime 5223.37")

    def answer(assignment: Assignment) -> Evidence:
        assert plan_of(assignment).reads_rails is (plan_of(assignment).harness != "device_check")
        return evidence(assignment, farm, rails_before=HAL_2, rails_after=after)

    host.run(answer)
    view = last_attempt(farm)
    assert view.reading is not None
    (energy,) = view.reading.energy
    assert (energy.method, energy.joules, energy.inferences) == ("rails", pytest.approx(4.0), SAMPLES)
    assert energy.unreliable is None
    assert energy_metrics(view)["rails_energy"].value == pytest.approx(2.0)


def test_a_device_without_rails_says_so_and_keeps_its_time(farm: FarmRig, host: HostRig) -> None:
    farm.submit(**ONE_CELL, energy="rails")
    host.run(lambda assignment: evidence(assignment, farm, rails_before="uptime 1.00\n"))
    view = last_attempt(farm)
    assert view.reading is not None
    assert (view.quality, view.reading.energy) == ("valid", ())
    assert "no energy: the device publishes no energy of its rails" in view.notices


def test_energy_is_part_of_the_series_and_never_of_another_method(farm: FarmRig, host: HostRig) -> None:
    for energy in ("none", "battery", "rails"):
        farm.submit(**ONE_CELL, energy=energy)
        host.run(lambda assignment: evidence(assignment, farm))
    rows = farm.rows("SELECT CAST(settings AS TEXT) AS settings FROM series ORDER BY series_id")
    assert ["run.energy" in row["settings"] for row in rows] == [False, True, True]
    assert len(rows) == 3


def test_the_battery_needs_samples(farm: FarmRig) -> None:
    with pytest.raises(MatrixInvalid, match="`sampling` is off"):
        farm.submit(**ONE_CELL, energy="battery", sampling=False)


def test_imported_energy_is_shown_with_who_measured_what(farm: FarmRig, host: HostRig) -> None:
    farm.submit(**ONE_CELL)
    host.run(lambda assignment: evidence(assignment, farm))
    attempt_id = last_attempt(farm).attempt_id
    imported(farm, attempt_id, joules=3.0)
    view = imported(farm, attempt_id)
    assert view.reading is not None
    (energy,) = view.reading.energy
    assert (energy.method, energy.joules, energy.inferences) == ("external", 4.0, SAMPLES)
    assert (energy.boundary, energy.instrument, energy.imported_by) == (
        "supply of the phone", "power monitor", "ann",
    )  # fmt: skip
    assert energy_metrics(view)["external_energy"].value == pytest.approx(2.0)
    events = farm.rows("SELECT actor, cause FROM events WHERE kind = 'attempt_energy_imported' ORDER BY at")
    assert [row["actor"] for row in events] == ["user:ann"] * 2
    assert {"3 J" in row["cause"] or "4 J" in row["cause"] for row in events} == {True}


def test_energy_is_imported_only_where_a_number_is(farm: FarmRig, host: HostRig) -> None:
    with pytest.raises(NotFound):
        imported(farm, 999)
    farm.submit(**ONE_CELL)
    host.run(lambda assignment: replace(evidence(assignment, farm), stdout="nothing"))
    (row,) = farm.rows("SELECT max(attempt_id) AS attempt_id FROM attempts")
    with pytest.raises(Conflict, match="no measurement that counts"):
        imported(farm, row["attempt_id"])


@pytest.mark.parametrize("value", [0, -1, float("inf"), 1e12])
def test_impossible_energies_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="joules"):
        EnergyImport(joules=value, boundary="b", instrument="i")


def test_a_tool_that_counts_nothing_needs_the_number(farm: FarmRig, host: HostRig) -> None:
    farm.submit(**ONE_CELL)
    host.run(lambda assignment: evidence(assignment, farm))
    farm.write(lambda connection: connection.exec_driver_sql("UPDATE measurements SET sample_count = 0"))
    attempt_id = last_attempt(farm).attempt_id
    with pytest.raises(InvalidInput, match="how many inferences"):
        imported(farm, attempt_id)
    assert imported(farm, attempt_id, inferences=10).reading is not None
