"""Runs that rest on what an earlier run's pass showed, when that is read otherwise later."""

import zlib
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.database.transaction import bind_tx
from farm.harness.torch.speed_benchmark_torch import SpeedBenchmarkTorch
from farm.services.results.parse import parse
from farm.services.results.reparse import apply_changes, compare_readings, stale_reports
from farm.store.results.reparse import ReparseSelection
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import FarmRig, ended, report_body, torch_output

OUTPUT = torch_output([1000.0] * 5)
DSP = (
    "05-06 10:00:00.100   900   900 I ExecutionPlan: "
    "ModelBuilder::findBestDeviceForEachOperation(ADD) = 0 (qti-dsp)\n"
)
FELL_BACK = "05-06 10:00:01.100   900   930 I ExecutionBuilder: cpuFallbackFull\n"
OLDER = SpeedBenchmarkTorch().parser_version - 1


def run(assignment: Assignment, *, log: str = DSP, always: bool = False) -> Evidence:
    """A run, with the log of its pass where its plan has one."""
    evidence = ended(assignment, OUTPUT)
    if not always and (assignment.plan is None or not assignment.plan.passes):
        return evidence
    told = PassEvidence(
        name="placement", exit=ExitRecord(code=0, duration_s=1.0), stdout=OUTPUT, log=log, pid=900
    )
    return replace(evidence, passes=(told,))


@pytest.fixture
def attempts(farm: FarmRig) -> list[dict[str, Any]]:
    """Three NNAPI runs that an older adapter read: on the DSP, by the first one's pass."""
    farm.variant(target="nnapi")
    host = farm.host()
    host.plug_in("phone-1")
    host.earn_health()
    axes = {
        "model": "mobilenet_v2",
        "precision": "float32",
        "format": "torchscript",
        "target": "nnapi",
        "backend": "nnapi",
    }
    farm.submit(axes=axes, rounds=3, baseline=None)
    host.run(run)
    change(farm, "UPDATE measurements SET parser_version = :older", older=OLDER)
    assert qualities(farm) == ["valid"] * 3
    return farm.rows(
        "SELECT a.attempt_id, a.fence FROM attempts a JOIN measurements m ON m.attempt_id = a.attempt_id"
        " ORDER BY a.attempt_id"
    )


def change(farm: FarmRig, sql: str, **values: Any) -> None:
    def changed(connection: Connection) -> None:
        connection.execute(sa.text(sql), values)

    farm.write(changed)


def as_a_newer_adapter_would_see(farm: FarmRig, attempt: dict[str, Any], log: str) -> None:
    """Let the stored pass be one that the older adapter would have read as the DSP's."""
    assignment = Assignment.model_construct(fence=attempt["fence"], plan=None)
    body = zlib.compress(report_body(run(assignment, log=log, always=True)))
    change(
        farm, "UPDATE evidence SET body = :body WHERE attempt_id = :id", body=body, id=attempt["attempt_id"]
    )


def reparse(farm: FarmRig, *, limit: int) -> None:
    after: int | None = 0
    while after is not None:
        now = farm.clock.now()
        read = bind_tx(stale_reports, now=now)
        stored = farm.read(read, ReparseSelection(), after=AttemptId(after), limit=limit)
        looked = compare_readings(stored, parse)
        farm.write(bind_tx(apply_changes, now=now, actor="user:ann"), looked.pending)
        after = looked.page.next_after


def qualities(farm: FarmRig) -> list[str]:
    rows = farm.rows("SELECT quality FROM measurements WHERE accepted ORDER BY attempt_id")
    return [str(row["quality"]) for row in rows]


@pytest.mark.invariant("I4")
@pytest.mark.parametrize("limit", [1, 100])
def test_what_the_first_run_does_not_show_any_more_the_others_do_not_either(
    farm: FarmRig, attempts: list[dict[str, Any]], limit: int
) -> None:
    as_a_newer_adapter_would_see(farm, attempts[0], DSP + FELL_BACK)
    reparse(farm, limit=limit)
    assert qualities(farm) == ["fallback"] * 3


def test_a_first_run_that_shows_nothing_any_more_leaves_the_others_unproven(
    farm: FarmRig, attempts: list[dict[str, Any]]
) -> None:
    as_a_newer_adapter_would_see(farm, attempts[0], "")
    reparse(farm, limit=100)
    assert qualities(farm) == ["unproven"] * 3


def test_a_first_run_that_is_read_alike_leaves_the_others_as_they_are(
    farm: FarmRig, attempts: list[dict[str, Any]]
) -> None:
    reparse(farm, limit=1)
    assert qualities(farm) == ["valid"] * 3
    assert farm.rows("SELECT 1 FROM measurements WHERE NOT accepted") == []
