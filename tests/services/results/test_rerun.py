"""One number measured again as it was made, whatever was replaced since."""

from dataclasses import replace
from typing import Any

import pytest

from farm.core.base.ids import AttemptId, DeviceId, MatrixId
from farm.core.errors import ArtifactExpired, Conflict, InvalidInput, NotFound
from farm.database.transaction import Tx, bind_tx
from farm.services.devices.admin import retire
from farm.services.matrices.lazy_expansion import store_and_expand
from farm.services.operations.alarms import list_alarms
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.rerun import plan_rerun, prepare_number_rerun
from farm.store.files.artifacts import expire_artifacts
from farm.store.files.programs import current_programs, put_program
from farm.store.results.history.stale_points import MeasuredSession, mark_sessions
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.results.rerun import RerunPlan
from tests.services.results.history.test_changes import search
from tests.services.results.history.test_latest_speedups import Unsteady
from tests.services.results.history.test_latest_speedups import measured as measured_unsteadily
from tests.support.farm.copied_sessions import FOUR_PAIRS, another_file, copy_session
from tests.support.farm.points import all_points, compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig

HARNESS = "speed_benchmark_torch"


@pytest.fixture
def host(farm: FarmRig, both_variants: None) -> HostRig:
    host = farm.host()
    host.plug_in("phone-1", build_fingerprint="vendor/build-1")
    host.earn_health()
    return host


def attempt_of(farm: FarmRig, matrix_id: MatrixId, label: str) -> AttemptId:
    """The first attempt of a cell."""
    rows = farm.rows(
        "SELECT MIN(attempts.attempt_id) AS attempt_id FROM attempts"
        " JOIN jobs ON jobs.job_id = attempts.job_id JOIN cells ON cells.cell_id = jobs.cell_id"
        " WHERE cells.matrix_id = :matrix AND cells.label = :label",
        matrix=matrix_id,
        label=label,
    )
    return AttemptId(rows[0]["attempt_id"])


def measured(farm: FarmRig, host: HostRig, **changes: Any) -> MatrixId:
    matrix_id = farm.submit(**changes)
    host.run()
    return matrix_id


def plan(farm: FarmRig, attempt_id: AttemptId) -> RerunPlan:
    return farm.read(plan_rerun, attempt_id)


def again(farm: FarmRig, attempt_id: AttemptId) -> MatrixId:
    def rerun(tx: Tx) -> MatrixId | None:
        return store_and_expand(tx, prepare_number_rerun(tx.connection, attempt_id))

    matrix_id = farm.write(bind_tx(rerun, now=farm.clock.now(), actor="user"))
    assert matrix_id is not None
    return matrix_id


def cells(farm: FarmRig, matrix_id: MatrixId) -> list[dict[str, Any]]:
    return farm.rows(
        "SELECT device_id, variant_id, program_id, backend, settings, replica, baseline_index FROM cells"
        " WHERE matrix_id = :matrix ORDER BY cell_index",
        matrix=matrix_id,
    )


def parts(plan: RerunPlan) -> dict[str, bool]:
    return {difference.part: difference.uses_before for difference in plan.differences}


def test_a_number_is_measured_again_beside_its_baseline(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    first = measured(farm, host)
    own = [cell for cell in cells(farm, first) if cell["device_id"] == "phone-1"]
    told = plan(farm, attempt_of(farm, first, "int8-core"))
    assert (told.baseline, told.label, told.rounds, told.jobs) == ("float32", "int8-core", 5, 10)
    assert told.differences == ()
    assert told.speedup is not None
    assert told.speedup.rounds == 5
    second = again(farm, attempt_of(farm, first, "int8-core"))
    assert cells(farm, second) == own
    host.run()
    (row,) = farm.speedups(second)
    assert (row.rounds, row.speedup) == (5, told.speedup.speedup)


def test_the_old_file_and_the_old_program_run_where_both_were_replaced(farm: FarmRig, host: HostRig) -> None:
    first = measured(farm, host)
    attempt_id = attempt_of(farm, first, "int8-core")
    farm.variant("int8-core", edition="2")
    program = farm.read(current_programs, HARNESS)["x86_64"]
    renewed = replace(program.bundle, env={**program.bundle.env, "EDITION": "2"})
    farm.write(
        bind_tx(put_program, now=farm.clock.now()),
        harness=HARNESS,
        abi="x86_64",
        bundle=renewed,
        definition=program.definition,
    )
    assert parts(plan(farm, attempt_id)) == {
        "file of mobilenet_v2/int8-core/torchscript": True,
        f"program of {HARNESS} for x86_64": True,
    }
    second = again(farm, attempt_id)
    assert cells(farm, second) == cells(farm, first)
    host.run()
    digests = farm.rows(
        "SELECT DISTINCT variant_digest, program_digest, series_id FROM measurements"
        " JOIN jobs ON jobs.job_id = measurements.job_id ORDER BY variant_digest"
    )
    # Of the same series, with the same files: as if nothing had been replaced.
    assert len(digests) == 2
    assert {row["program_digest"] for row in digests} == {program.digest}


def slower_file(farm: FarmRig, host: HostRig) -> tuple[MatrixId, MatrixId]:
    """The only session of a file, and the last of many of a slower one that replaced it."""
    first = measured_unsteadily(farm, host, rounds=2, axes=FOUR_PAIRS)
    compute_points(farm)
    newer = another_file(farm)
    for day in range(1, 20):
        copy_session(farm, first, days=day, slower=1.3, variant_id=newer)
    farm.clock.advance(20 * 86400)
    usual = measured_unsteadily(farm, host, slower=1.3, rounds=2, axes=FOUR_PAIRS)
    compute_points(farm)
    return first, usual


def test_an_old_file_measured_again_is_no_news_of_its_series(farm: FarmRig, host: HostRig) -> None:
    first, usual = slower_file(farm, host)
    before, changes = farm.read(list_latest_speedups), search(farm)
    assert len([change for change in changes if change.delta > 0]) == 1

    farm.clock.advance(86400)
    old = again(farm, attempt_of(farm, first, "int8-core warmup=1"))
    host.run(Unsteady(farm))
    (repeated,) = farm.speedups(old)
    assert repeated.rounds == 2
    # Neither before points are computed nor after that.
    assert farm.read(list_latest_speedups) == before
    compute_points(farm)
    farm.write(bind_tx(mark_sessions, now=farm.clock.now()), [MeasuredSession(old, DeviceId("phone-1"))])
    assert compute_points(farm) == 0
    assert farm.read(list_latest_speedups) == before
    assert old not in {point.matrix_id for point in all_points(farm)}
    assert search(farm) == changes

    for day in range(2, 5):
        copy_session(farm, usual, days=day)
    farm.clock.advance(4 * 86400)
    assert [change.change_id for change in search(farm)] == [change.change_id for change in changes]


@pytest.mark.long
def test_usual_sessions_after_reruns_of_an_old_file_are_no_regression_and_raise_no_alarm(
    farm: FarmRig, host: HostRig
) -> None:
    first, usual = slower_file(farm, host)
    told = [change.change_id for change in search(farm)]
    # A version is believed from its third session on: so many would be told as an improvement, and the usual
    # file behind them as a regression.
    for _ in range(3):
        farm.clock.advance(86400)
        again(farm, attempt_of(farm, first, "int8-core warmup=1"))
        host.run(Unsteady(farm))
    compute_points(farm)
    for day in range(4, 7):
        farm.clock.advance(86400)
        copy_session(farm, usual, days=day)
    assert [change.change_id for change in search(farm)] == told
    assert farm.read(list_alarms, cleared=True) == []


def test_what_the_device_is_now_is_said(farm: FarmRig, host: HostRig) -> None:
    first = measured(farm, host)
    host.plug_in("phone-1", build_fingerprint="vendor/build-2")
    host.exchange()
    (build,) = plan(farm, attempt_of(farm, first, "int8-core")).differences
    assert (build.part, build.before, build.now) == ("build", "vendor/build-1", "vendor/build-2")
    assert not build.uses_before


def test_a_baseline_runs_alone_and_a_duplicate_beside_its_baseline(farm: FarmRig, host: HostRig) -> None:
    first = measured(farm, host, aa=True)
    alone = plan(farm, attempt_of(farm, first, "float32"))
    assert (alone.baseline, alone.speedup, alone.jobs) == (None, None, 5)
    assert alone.time is not None
    assert len(cells(farm, again(farm, alone.attempt_id))) == 1
    duplicate = plan(farm, attempt_of(farm, first, "float32 (A/A)"))
    assert (duplicate.baseline, duplicate.jobs) == ("float32", 10)
    second = again(farm, duplicate.attempt_id)
    assert [cell["replica"] for cell in cells(farm, second)] == [1, 2]
    with_duplicate = again(farm, attempt_of(farm, first, "int8-core"))
    assert [cell["replica"] for cell in cells(farm, with_duplicate)] == [1, 2, 1]
    host.run()
    assert [row.aa for row in farm.speedups(with_duplicate)] == [True, False]


def test_a_number_of_a_growing_matrix_grows_again(farm: FarmRig, host: HostRig) -> None:
    first = measured(farm, host, rounds={"at_least": 5, "at_most": 12, "until": "decided"})
    told = plan(farm, attempt_of(farm, first, "int8-core"))
    assert (told.rounds, told.max_rounds, told.jobs, told.max_jobs) == (5, 12, 10, 24)


def test_what_cannot_be_measured_again_is_refused_with_the_reason(farm: FarmRig, host: HostRig) -> None:
    first = measured(farm, host)
    attempt_id = attempt_of(farm, first, "int8-core")
    with pytest.raises(NotFound, match="there is no attempt 999"):
        plan(farm, AttemptId(999))
    (check,) = farm.rows(
        "SELECT MIN(attempts.attempt_id) AS id FROM attempts"
        " JOIN jobs ON jobs.job_id = attempts.job_id WHERE jobs.kind = 'check'"
    )
    with pytest.raises(InvalidInput, match="is a health check"):
        plan(farm, AttemptId(check["id"]))
    request = OperatorRequest(by="ann", reason="broken")
    farm.write(bind_tx(retire, now=farm.clock.now()), "phone-1", request)
    with pytest.raises(Conflict, match="phone-1 is retired"):
        plan(farm, attempt_id)


def test_a_deleted_file_is_named_with_the_command_that_sends_it_again(farm: FarmRig, host: HostRig) -> None:
    first = measured(farm, host)
    attempt_id = attempt_of(farm, first, "int8-core")
    (variant,) = farm.rows("SELECT digest FROM variants WHERE name LIKE '%int8-core%'")
    farm.write(bind_tx(expire_artifacts, now=farm.clock.now()), [variant["digest"]], cause="test")
    with pytest.raises(ArtifactExpired, match="the file of mobilenet_v2/int8-core/torchscript") as refused:
        again(farm, attempt_id)
    assert "farm variant build mobilenet_v2" in refused.value.hint
    assert "farm variant add FILE" in refused.value.hint
