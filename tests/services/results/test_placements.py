"""Passes that show where work ran: asked once, told of when it moves, and shown series by series."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from farm.core.base.ids import MatrixId
from farm.core.results.settle.consequences import place_in_words
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.services.results.placements import list_placements
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.results.results import PlacedSeries
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, report_body, torch_output

OUTPUT = torch_output([1000.0] * 5)
LINE = (
    "05-06 10:00:00.{:03}   900   900 I ExecutionPlan: "
    "ModelBuilder::findBestDeviceForEachOperation(ADD) = 0 ({})\n"
)


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    """With a phone, and a file that was converted for NNAPI."""
    farm.variant(target="nnapi")
    return farm.healthy_host("phone-1")


def submit(farm: FarmRig, *, rounds: int = 3) -> MatrixId:
    axes = {
        "model": "mobilenet_v2",
        "precision": "float32",
        "format": "torchscript",
        "target": "nnapi",
        "backend": "nnapi",
    }
    return farm.submit(axes=axes, rounds=rounds, baseline=None)


def on(*drivers: str) -> Callable[[Assignment], Evidence]:
    """Runs whose pass, where their plan has one, logs one operation for each driver."""
    log = "".join(LINE.format(at, name) for at, name in enumerate(drivers))

    def answer(assignment: Assignment) -> Evidence:
        evidence = ended(assignment, OUTPUT)
        asked = assignment.plan.passes if assignment.plan else ()
        done = ExitRecord(code=0, duration_s=1.0)
        found = [PassEvidence(name=each.name, exit=done, stdout=OUTPUT, log=log, pid=900) for each in asked]
        return replace(evidence, passes=tuple(found))

    return answer


def counting(answer: Callable[[Assignment], Evidence], seen: list[int]) -> Callable[[Assignment], Evidence]:
    def counted(assignment: Assignment) -> Evidence:
        assert assignment.plan is not None
        seen.append(len(assignment.plan.passes))
        return answer(assignment)

    return counted


def shown(farm: FarmRig, matrix_id: MatrixId | None = None) -> list[PlacedSeries]:
    return farm.read(list_placements, matrix_id=matrix_id)


def told(farm: FarmRig) -> list[dict[str, object]]:
    return farm.rows("SELECT from_state, to_state, subject_id FROM events WHERE kind = 'placement_changed'")


def test_the_first_run_is_asked_where_it_ran_and_speaks_for_the_others(farm: FarmRig, host: HostRig) -> None:
    matrix_id, passes = submit(farm), list[int]()
    host.run(counting(on("qti-dsp", "qti-dsp", "qti-dsp", "nnapi-reference"), passes))
    assert passes == [1, 0, 0]
    rows = farm.rows("SELECT quality, accelerator, proof FROM measurements WHERE accepted ORDER BY round")
    assert [(row["quality"], row["accelerator"]) for row in rows] == [("valid", "dsp")] * 3
    assert "shown after attempt" in rows[1]["proof"]
    (view,) = shown(farm, matrix_id)
    assert (view.words, view.backend, view.actual_backend) == ("dsp 3/4, cpu 1", "nnapi", "nnapi")
    assert view.placement is not None


def test_a_pass_that_shows_nothing_is_not_asked_for_ever(farm: FarmRig, host: HostRig) -> None:
    passes = list[int]()
    submit(farm, rounds=6)
    host.run(counting(on(), passes))
    assert passes == [1, 1, 1, 0, 0, 0]
    (view,) = shown(farm)
    assert (view.words, view.quality) == ("unknown", "unproven")


def test_a_pass_whose_driver_says_nothing_of_hardware_has_shown_nothing(farm: FarmRig, host: HostRig) -> None:
    passes, answers = list[int](), iter([on("qti-default"), on("qti-dsp"), on("qti-dsp")])
    submit(farm)
    host.run(counting(lambda assignment: next(answers)(assignment), passes))
    assert passes == [1, 1, 0]
    rows = farm.rows("SELECT quality FROM measurements WHERE accepted ORDER BY round")
    assert [row["quality"] for row in rows] == ["unproven", "valid", "valid"]


def test_another_build_of_the_phone_is_asked_again(farm: FarmRig, host: HostRig) -> None:
    passes = list[int]()
    submit(farm, rounds=2)
    host.run(counting(on("qti-dsp"), passes))
    host.plug_in("phone-1", build_fingerprint="another build")
    host.earn_health()
    submit(farm, rounds=2)
    host.run(counting(on("qti-dsp"), passes))
    assert passes == [1, 0, 1, 0]
    assert told(farm) == []


def test_work_that_moves_to_other_hardware_is_told_of_and_calls_someone(farm: FarmRig, host: HostRig) -> None:
    submit(farm, rounds=1)
    host.run(on("google-edgetpu", "google-edgetpu"))
    submit(farm, rounds=1)
    host.run(on("google-edgetpu", "google-edgetpu"))
    assert told(farm) == []
    submit(farm, rounds=1)
    host.run(on("nnapi-reference", "nnapi-reference"))
    (event,) = told(farm)
    assert event == {"from_state": "nnapi on npu 2/2", "to_state": "cpu on cpu 2/2", "subject_id": "phone-1"}
    (alarm,) = farm.rows("SELECT kind, subject, message FROM alarms WHERE cleared_at IS NULL")
    assert (alarm["kind"], alarm["subject"]) == ("placement_changed", "series")
    assert "ran as nnapi on npu 2/2, and runs as cpu on cpu 2/2 now" in alarm["message"]
    (view,) = shown(farm)
    assert (view.quality, view.words) == ("fallback", "cpu 2/2")


@pytest.mark.invariant("I17", "I20")
def test_of_reports_that_come_together_each_is_reported_before_the_next(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    for _ in range(2):
        submit(farm, rounds=1)
        host.run(on("google-edgetpu"))
    submit(farm, rounds=1)
    given = host.exchange().assignments
    host.report_together([(each.attempt_id, report_body(on("nnapi-reference")(each))) for each in given])
    kinds = "('attempt_finished', 'job_finished', 'placement_changed')"
    last = farm.rows(f"SELECT kind FROM events WHERE kind IN {kinds} ORDER BY event_id DESC LIMIT 6")
    first, second = [row["kind"] for row in last[:3]], [row["kind"] for row in last[3:]]
    assert first == second == ["placement_changed", "job_finished", "attempt_finished"]


def test_what_was_never_shown_cannot_have_changed(farm: FarmRig, host: HostRig) -> None:
    for drivers in (["qti-default"], ["qti-dsp"], ["qti-default"], ["qti-dsp"]):
        submit(farm, rounds=1)
        host.run(on(*drivers))
    assert told(farm) == []
    assert place_in_words("nnapi", "unknown", None) is None


def test_a_run_on_the_cpu_has_no_pass_and_needs_none(farm: FarmRig, host: HostRig) -> None:
    passes = list[int]()
    farm.variant()
    farm.variant(precision="int8-core")
    matrix_id = farm.submit(rounds=1)
    host.run(counting(on(), passes))
    assert passes == [0, 0]
    assert {view.words for view in shown(farm, matrix_id)} == {"cpu"}
