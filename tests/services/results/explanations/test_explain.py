"""What a number or a speedup rests on: every figure of the explanation can be found in the evidence."""

import math
from dataclasses import replace

import pytest

from farm.core.base.ids import CellId, JobId, MatrixId
from farm.core.devices.condition import Condition, ThermalStatus
from farm.core.errors import NotFound
from farm.core.results.statistics.pair_distance import RESTARTED
from farm.core.runs.evidence import Evidence
from farm.services.results.explanations.cells import explain_cell
from farm.services.results.explanations.jobs import explain_job, job_detail
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.results.explain import CellExplanation
from tests.support.database.sent_statements import sent_to
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    ended,
    good_evidence,
    plan_of,
    report_body,
    torch_output,
)

pytestmark = pytest.mark.usefixtures("both_variants")


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    return farm.healthy_host("phone-1")


class Runs:
    """Runs of a phone that gets warmer: the int8 model is quicker, and a chosen run is short."""

    def __init__(self, farm: FarmRig, *, short: int | None = None, restart: int | None = None) -> None:
        self.farm = farm
        self.short = short
        #: The first run after the device restarted.
        self.restart = restart
        self.count = 0

    def __call__(self, assignment: Assignment) -> Evidence:
        self.count += 1
        precision = self.precision(assignment)
        evidence = good_evidence(
            assignment, sample_us=1000.0 if precision == "float32" else 500.0 + self.count
        )
        if self.count == self.short:
            evidence = ended(assignment, torch_output([1000.0] * 4))
        return replace(evidence, before=self.condition(30.0), after=self.condition(31.0), pushed_bytes=7)

    def condition(self, skin_c: float) -> Condition:
        is_restarted = self.restart is not None and self.count >= self.restart
        return Condition(
            taken_at=self.farm.clock.now(),
            thermal_status=ThermalStatus.NONE,
            skin_c=skin_c + self.count / 10,
            boot_id="second" if is_restarted else "first",
            uptime_s=90.0 * self.count - (80.0 * self.restart if is_restarted and self.restart else 0.0),
        )

    def precision(self, assignment: Assignment) -> str:
        digest = plan_of(assignment).file("model").digest
        (row,) = self.farm.rows("SELECT name FROM variants WHERE digest = :digest", digest=digest)
        return str(row["name"]).split("/")[1]


def measured(
    farm: FarmRig, host: HostRig, *, short: int | None = None, restart: int | None = None, **spec: object
) -> MatrixId:
    matrix_id = farm.submit(**{"aa": True, **spec})
    host.run(Runs(farm, short=short, restart=restart))
    return matrix_id


def cells(farm: FarmRig, matrix_id: MatrixId) -> dict[str, CellId]:
    return {cell.label: cell.cell_id for cell in farm.matrix(matrix_id).cell_list}


def explained(farm: FarmRig, cell_id: CellId) -> CellExplanation:
    return farm.read(explain_cell, cell_id)


def test_the_rounds_of_a_speedup_are_there_and_make_it(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host)
    view = explained(farm, cells(farm, matrix_id)["int8-core"])
    assert view.speedup is not None
    assert [each.round for each in view.rounds] == [1, 2, 3, 4, 5]
    mean = math.exp(sum(math.log(each.ratio) for each in view.rounds) / 5)
    assert math.isclose(mean, view.speedup.speedup or 0.0)
    assert view.method[0].startswith("speedup: geometric mean of 5 ratios")
    assert "widened by the step of the clock" in view.method[1]
    for each in view.rounds:
        ran = farm.rows(
            "SELECT a.job_id FROM attempts a JOIN jobs j USING (job_id) WHERE j.matrix_id = :matrix"
            " AND j.round = :round ORDER BY a.fence",
            matrix=matrix_id,
            round=each.round,
        )
        assert [row["job_id"] for row in ran].index(each.baseline_job) == each.baseline_place - 1
        assert [row["job_id"] for row in ran].index(each.candidate_job) == each.candidate_place - 1
        assert each.block_size == len(ran) == 3


def test_the_sides_of_each_round_say_how_far_apart_they_began(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host, aa=False)
    view = explained(farm, cells(farm, matrix_id)["int8-core"])
    # One run after the other, each 90 s later on the device's clock.
    places = [abs(each.baseline_place - each.candidate_place) for each in view.rounds]
    assert [each.minutes_apart for each in view.rounds] == [pytest.approx(1.5 * apart) for apart in places]
    assert view.speedup is not None
    assert view.speedup.distance is not None
    assert (view.speedup.distance.largest_min, view.speedup.distance.pairs) == (pytest.approx(1.5), 5)


def test_a_block_in_which_the_device_restarted_is_left_out_and_run_again(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = measured(farm, host, restart=4, aa=False)
    view = explained(farm, cells(farm, matrix_id)["int8-core"])
    (left_out,) = view.left_out
    assert (left_out.round, left_out.reason, left_out.restarted) == (2, RESTARTED, True)
    assert [(each.round, each.repeat) for each in view.rounds] == [(1, 0), (2, 1), (3, 0), (4, 0), (5, 0)]


def test_both_sides_say_file_program_proof_and_conditions(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host)
    view = explained(farm, cells(farm, matrix_id)["int8-core"])
    assert view.baseline is not None
    assert view.baseline.manifest is not None
    assert view.baseline.variant == "mobilenet_v2/float32/torchscript"
    assert view.candidate.changed_settings == {"iter": 5}
    assert view.candidate.program.harness == "speed_benchmark_torch"
    (placement,) = view.candidate.placements
    assert (placement.actual_backend, placement.runs) == ("cpu", 5)
    skin = next(each for each in view.candidate.conditions if each.name == "skin_c")
    assert skin.known == 5
    assert skin.before is not None
    assert skin.after is not None
    assert skin.after[0] == pytest.approx(skin.before[0] + 1)
    assert skin.before[0] < skin.before[1]
    (build,) = view.device.builds
    assert (build.facts.soc, build.runs) == ("host CPU", 10)


def test_a_baseline_is_shown_with_its_duplicate_and_those_compared_to_it(
    farm: FarmRig, host: HostRig
) -> None:
    by_label = cells(farm, measured(farm, host))
    duplicate, baseline, candidate = by_label["float32 (A/A)"], by_label["float32"], by_label["int8-core"]
    assert (view := explained(farm, candidate)).aa is not None
    assert view.aa.cell_id == duplicate
    alone = explained(farm, baseline)
    assert (alone.speedup, alone.baseline, alone.rounds) == (None, None, ())
    assert alone.compared_to_it == (duplicate, candidate)
    assert alone.aa is not None


def test_a_block_that_was_measured_again_is_left_out_with_the_reason(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host, short=1)
    views = [explained(farm, cells(farm, matrix_id)[label]) for label in ("int8-core", "float32 (A/A)")]
    assert all([(each.round, each.repeat) for each in view.left_out] == [(1, 0)] for view in views)
    assert {view.left_out[0].reason for view in views} <= {
        "the baseline is incomplete",
        "the candidate is incomplete",
        "the block was run again, and a later repeat counts",
    }
    assert [each.repeat for each in views[0].rounds] == [1, 0, 0, 0, 0]
    assert all(each.side in ("baseline", "candidate", "both") for view in views for each in view.left_out)
    sides = [side for view in views for side in (view.baseline, view.candidate) if side is not None]
    assert any(side.runs_by_quality.get("incomplete") == 1 for side in sides)
    assert any("5 were asked for" in reason for side in sides for reason in side.quality_reasons)


def test_a_number_is_told_with_its_run_and_its_use(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host)
    view = explained(farm, cells(farm, matrix_id)["int8-core"])
    job_id = view.rounds[2].candidate_job
    number = farm.read(explain_job, job_id)
    assert number.side is not None
    (run,) = number.side.runs
    assert run.value_ns == view.rounds[2].candidate_ns
    assert (number.use, number.cells) == ("it counts, as one round", (view.candidate.cell_id,))
    assert (number.place, number.block_size) == (view.rounds[2].candidate_place, 3)
    assert (number.argv, number.pushed_bytes) == (("./program",), 7)
    assert number.before is not None
    assert number.job.attempt_list[0].attempt_id == run.attempt_id
    of_baseline = farm.read(explain_job, view.rounds[2].baseline_job)
    assert view.candidate.cell_id in of_baseline.cells


def test_a_number_that_nothing_is_compared_to_is_no_baselines(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(baseline=None)
    host.run(Runs(farm))
    cell = farm.matrix(matrix_id).cell_list[0]
    number = farm.read(explain_job, explained(farm, cell.cell_id).candidate.runs[0].job_id)
    assert (number.use, number.cells) == ("in no comparison: the matrix compares nothing to it", ())


def test_what_expired_is_missed_and_said(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host)
    farm.write(
        lambda connection: connection.exec_driver_sql(
            "UPDATE evidence SET body = NULL, expired_at = 1, expired_by = 'rule'"
        )
    )
    view = explained(farm, cells(farm, matrix_id)["int8-core"])
    assert (view.candidate.conditions, view.candidate.runs_without_evidence) == ((), 5)
    assert view.speedup is not None
    assert farm.read(explain_job, view.rounds[0].candidate_job).argv == ()


def test_a_job_that_was_not_measured_is_told_too(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    (assignment,) = host.exchange().assignments
    assert farm.read(explain_job, assignment.job_id).use is None
    host.report(assignment.attempt_id, ended(assignment, "", code=134, stderr="terminate called"))
    detail = farm.read(job_detail, assignment.job_id)
    assert (detail.outcome, detail.run) == ("failed", None)
    assert [line.outcome for line in detail.attempt_list] == ["failed"]


def test_a_run_that_printed_what_no_text_can_hold_is_explained(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    (assignment,) = host.exchange().assignments
    printed = report_body(replace(good_evidence(assignment), stderr="HALF"))
    assert host.report_bytes(assignment.attempt_id, printed.replace(b"HALF", b"\\ud800")).counted
    assert farm.read(explain_job, assignment.job_id).argv == ("./program",)


def test_what_is_not_there_cannot_be_explained(farm: FarmRig, host: HostRig) -> None:
    with pytest.raises(NotFound, match="there is no cell 99"):
        explained(farm, CellId(99))
    with pytest.raises(NotFound, match="there is no job 99"):
        farm.read(explain_job, JobId(99))
    (check,) = farm.rows("SELECT job_id FROM jobs WHERE kind = 'check'")
    with pytest.raises(NotFound, match="is a health check"):
        farm.read(explain_job, check["job_id"])
    assert farm.read(job_detail, check["job_id"]).label == "health check"


def test_both_sides_of_a_cell_are_explained_by_the_same_statements(farm: FarmRig, host: HostRig) -> None:
    measured(farm, host)
    for view in farm.speedups():
        with sent_to(farm.database.engine) as sent:
            farm.read(explain_cell, view.cell_id)
        for once in ("FROM evidence", "GROUP BY jobs.cell_id", "WITH RECURSIVE walk"):
            assert len([sql for sql, _ in sent if once in sql]) == 1, once
