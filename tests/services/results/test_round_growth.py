"""A matrix grows by rounds until its cells are decided; nothing is lost or doubled on the way."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.matrices.rounds import LOOKS_AT
from farm.core.results.looks.basis import IntervalKind
from farm.core.results.looks.look import LookStop
from farm.core.results.statistics.gate import GateOutcome, judge_gate
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Verdict
from farm.database.transaction import bind_tx
from farm.services.matrices.views import list_matrix_summaries
from farm.services.results.round_growth import DueGrowth, find_next_growth, grow_next
from farm.store.results.looks import looks_of_cells
from farm.wire.agents.protocol import Assignment
from tests.services.conftest import on_sqlite_alone
from tests.support.farm.direct_calls import cancel_matrix
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    ended,
    good_evidence,
    plan_of,
    torch_output,
)

GROWING = {"at_least": 5, "at_most": 40, "until": "decided"}
#: By `warmup`, which tells cells apart: the factor of the baseline's time, and the noise of a start.
Effects = dict[int, tuple[float, float]]


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    farm.variant()
    return farm.healthy_host("phone-1")


def submit(farm: FarmRig, *, warmups: int = 2, **changes: Any) -> MatrixId:
    """A matrix whose cells differ in `warmup`; the baseline has none."""
    axes = {
        "model": "mobilenet_v2",
        "precision": "float32",
        "format": "torchscript",
        "backend": "cpu",
        "warmup": list(range(warmups + 1)),
    }
    return farm.submit(**{"axes": axes, "baseline": {"warmup": 0}, "rounds": GROWING, "seed": 3, **changes})


def measure(effects: Effects, *, seed: int = 1) -> Callable[[Assignment], Evidence]:
    """Runs that take a time by their cell, with noise."""
    drawn = random.Random(seed)

    def answer(assignment: Assignment) -> Evidence:
        plan = plan_of(assignment)
        if plan.harness == "device_check":
            return good_evidence(assignment)
        factor, noise = effects.get(int(plan.settings["warmup"]), (1.0, 0.001))
        us = 10_000 * factor * (1 + noise * drawn.gauss(0, 1))
        return ended(assignment, torch_output([us] * int(plan.settings["iter"])))

    return answer


def grow(farm: FarmRig, **limits: int) -> int:
    """Do all that is due, each step by a process of its own; how many steps that took."""
    steps = 0
    while (due := farm.read(find_next_growth)) is not None:
        farm.write(bind_tx(grow_next, now=farm.clock.now()), due, **limits)
        steps += 1
    return steps


def run(farm: FarmRig, host: HostRig, effects: Effects, **limits: int) -> None:
    """Run and grow until nothing is left to do."""
    answer = measure(effects)
    while host.run(answer) + grow(farm, **limits):
        pass


def jobs_of(farm: FarmRig, matrix_id: MatrixId) -> dict[str, int]:
    rows = farm.rows(
        "SELECT c.label FROM jobs j JOIN cells c ON c.cell_id = j.cell_id WHERE j.matrix_id = :matrix",
        matrix=matrix_id,
    )
    return Counter(row["label"] for row in rows)


def test_a_decided_cell_drops_out_and_its_baseline_goes_on_for_the_others(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = submit(farm)
    run(farm, host, {1: (2.0, 0.001), 2: (1.0, 0.2)})
    counts = jobs_of(farm, matrix_id)
    assert counts["warmup=1"] == 5
    assert counts["warmup=0"] == counts["warmup=2"] > 5
    one, two = farm.speedups(matrix_id)
    assert (one.verdict, one.interval.stopped) == (Verdict.SLOWER, LookStop.DECIDED)
    assert (one.rounds, one.excluded, one.interval.look, one.interval.looks) == (5, 0, 1, 5)
    assert two.interval.stopped in (LookStop.DECIDED, LookStop.LAST)
    assert farm.matrix(matrix_id).state == "finished"


def test_a_repeated_block_of_a_further_round_leaves_decided_cells_out(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    answer = measure({1: (2.0, 0.001), 2: (1.0, 0.2)})
    host.run(answer)
    grow(farm)
    (assignment,) = host.exchange().assignments
    host.report(assignment.attempt_id, ended(assignment, torch_output([1000.0])))
    host.clean(assignment)
    host.run(answer)
    assert jobs_of(farm, matrix_id) == {"warmup=0": 9, "warmup=1": 5, "warmup=2": 9}


def test_a_later_question_gives_the_interval_that_was_seen_at_the_look(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    answer = measure({1: (1.02, 0.02), 2: (1.0, 0.2)})
    for _ in range(3):
        host.run(answer)
        grow(farm)
        # Further rounds are queued, and some of them measured: what was seen stays as it was.
        for assignment in host.exchange().assignments:
            host.report(assignment.attempt_id, answer(assignment))
            host.clean(assignment)
        for view in farm.speedups(matrix_id):
            look = farm.read(looks_of_cells, [view.cell_id])[view.cell_id][-1]
            assert (view.ci_low, view.ci_high, view.verdict) == (look.ci_low, look.ci_high, look.verdict)
            assert view.rounds == look.usable
            assert view.interval.kind is IntervalKind.LOOK


@pytest.mark.long
@on_sqlite_alone
def test_looks_are_had_at_the_planned_numbers_of_usable_rounds(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=1, rounds={**GROWING, "until": {"half_width": "0.01%"}})
    run(farm, host, {1: (1.0, 0.2)})
    (view,) = farm.speedups(matrix_id)
    looks = farm.read(looks_of_cells, [view.cell_id])[view.cell_id]
    assert tuple(look.usable for look in looks) == LOOKS_AT
    assert [look.stopped for look in looks] == [None] * 4 + [LookStop.LAST]
    assert view.rounds == 40


def test_rounds_are_added_until_the_gate_has_an_answer(farm: FarmRig, host: HostRig) -> None:
    rounds = {"at_least": 5, "at_most": 40, "not_slower": "3%"}
    matrix_id = submit(farm, warmups=3, rounds=rounds)
    run(farm, host, {1: (1.0, 0.03), 2: (1.4, 0.03), 3: (1.03, 0.03)})
    views = {view.candidate: view for view in farm.speedups(matrix_id)}
    same, slower, at_margin = (views[f"warmup={number}"] for number in (1, 2, 3))
    outcomes = [judge_gate([view], margin=0.03, family=4, looks=5)[0] for view in (same, slower, at_margin)]
    assert outcomes == [GateOutcome.PASSED, GateOutcome.SLOWER, GateOutcome.UNDECIDED]
    assert [view.interval.stopped for view in (same, slower)] == [LookStop.DECIDED] * 2
    assert at_margin.interval.stopped is LookStop.LAST
    assert slower.rounds < at_margin.rounds == 40


@on_sqlite_alone
def test_rounds_are_added_until_the_interval_is_narrow_enough(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=1, rounds={**GROWING, "until": {"half_width": "3%"}})
    run(farm, host, {1: (2.0, 0.03)})
    (view,) = farm.speedups(matrix_id)
    assert view.interval.stopped is LookStop.NARROW
    assert view.ci_low is not None
    assert view.ci_high is not None
    assert (view.ci_high / view.ci_low) ** 0.5 - 1 <= 0.03
    assert 5 < view.rounds < 40


@pytest.mark.long
@on_sqlite_alone
def test_the_duplicate_of_a_baseline_gets_as_many_rounds_as_that(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, aa=True)
    run(farm, host, {1: (2.0, 0.001), 2: (1.0, 0.2)})
    counts = jobs_of(farm, matrix_id)
    assert counts["warmup=0 (A/A)"] == counts["warmup=0"] > 5
    replica = next(view for view in farm.speedups(matrix_id) if view.aa)
    assert replica.rounds == counts["warmup=0"]


def test_a_cell_that_gives_no_usable_round_gets_no_further_ones(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=1)
    good = measure({})

    def answer(assignment: Assignment) -> Evidence:
        is_candidate = plan_of(assignment).settings.get("warmup") == 1
        return ended(assignment, "", code=134) if is_candidate else good(assignment)

    while host.run(answer) + grow(farm):
        pass
    assert max(jobs_of(farm, matrix_id).values()) == 5
    (view,) = farm.speedups(matrix_id)
    assert view.interval.stopped is LookStop.UNUSABLE
    assert farm.matrix(matrix_id).state == "finished"


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_small_steps_queue_the_same_jobs_in_the_same_order(farm: FarmRig, host: HostRig, limit: int) -> None:
    matrix_id = submit(farm)
    host.run(measure({1: (1.0, 0.2), 2: (1.0, 0.2)}))
    grow(farm, jobs_at_once=limit, cells_at_once=limit)
    rows = farm.rows(
        "SELECT c.label, j.round FROM jobs j JOIN cells c ON c.cell_id = j.cell_id"
        " WHERE j.matrix_id = :matrix AND j.round > 5 ORDER BY j.virtual_time, j.job_id",
        matrix=matrix_id,
    )
    assert Counter(row["round"] for row in rows) == {6: 3, 7: 3, 8: 3}
    assert [row["round"] for row in rows] == sorted(row["round"] for row in rows)
    orders = {tuple(row["label"] for row in rows[3 * n : 3 * n + 3]) for n in range(3)}
    assert (
        orders
        == {
            ("warmup=1", "warmup=0", "warmup=2"),
            ("warmup=2", "warmup=1", "warmup=0"),
        }
        or len(orders) > 1
    )


def test_a_step_that_is_lost_with_its_process_is_done_again_once(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    host.run(measure({1: (1.0, 0.2), 2: (1.0, 0.2)}))

    class Killed(Exception):
        pass

    def killed(connection: Connection, due: DueGrowth) -> None:
        bind_tx(grow_next, now=farm.clock.now())(connection, due)
        raise Killed

    while (due := farm.read(find_next_growth)) is not None:
        with pytest.raises(Killed):
            farm.write(killed, due)
        for _ in range(2):
            # The second is another process that read the same before.
            farm.write(bind_tx(grow_next, now=farm.clock.now()), due, jobs_at_once=4)
    assert set(jobs_of(farm, matrix_id).values()) == {8}
    assert farm.rows("SELECT count(*) AS looks FROM looks")[0]["looks"] == 2


def test_a_cancelled_matrix_gets_no_further_rounds(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    host.run(measure({1: (1.0, 0.2), 2: (1.0, 0.2)}))
    farm.write(bind_tx(cancel_matrix, now=farm.clock.now()), matrix_id)
    assert grow(farm) == 0
    assert farm.matrix(matrix_id).state == "finished"
    assert set(jobs_of(farm, matrix_id).values()) == {5}


def test_a_matrix_is_running_between_its_last_job_and_the_look_at_it(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    host.run(measure({1: (2.0, 0.001), 2: (2.0, 0.001)}))
    view = farm.matrix(matrix_id)
    assert (view.state, view.finished_at) == ("running", None)
    assert (view.rounds, view.max_rounds) == (5, 40)
    grow(farm)
    assert farm.matrix(matrix_id).state == "finished"


def test_an_interval_before_all_planned_rounds_is_wider(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=1, rounds=7)
    answer = measure({1: (1.1, 0.02)})
    for _ in range(13):
        (assignment,) = host.exchange().assignments
        farm.clock.advance(1)
        host.report(assignment.attempt_id, answer(assignment))
        host.clean(assignment)
    (early,) = farm.speedups(matrix_id)
    assert early.interval.kind is IntervalKind.ANYTIME
    host.run(answer)
    (late,) = farm.speedups(matrix_id)
    assert late.interval.kind is IntervalKind.PLANNED
    assert late.interval.confidence == 0.95
    assert early.interval.confidence is not None
    assert early.interval.confidence > 0.99


def test_growth_is_per_device(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    matrix_id = submit(farm, warmups=1)
    drawn = random.Random(5)

    def answer(assignment: Assignment) -> Evidence:
        noise = 0.2 if assignment.device_id == "phone-2" else 0.001
        factor = 2.0 if plan_of(assignment).settings["warmup"] else 1.0
        us = 10_000 * factor ** (assignment.device_id == "phone-1") * (1 + noise * drawn.gauss(0, 1))
        return ended(assignment, torch_output([us] * 5))

    host.run(answer)
    grow(farm)
    rows = farm.rows(
        "SELECT device_id, max(round) AS rounds FROM jobs WHERE matrix_id = :matrix GROUP BY 1 ORDER BY 1",
        matrix=matrix_id,
    )
    assert {DeviceId(row["device_id"]): row["rounds"] for row in rows} == {"phone-1": 5, "phone-2": 8}


def test_a_list_tells_the_time_left_of_a_matrix_between_its_looks(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    host.run(measure({1: (1.0, 0.2), 2: (1.0, 0.2)}))
    view = farm.matrix(matrix_id)
    (summary,) = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
    assert view.max_eta_s is not None
    assert view.max_eta_s > 0
    for name in ("state", "jobs", "eta_s", "max_eta_s", "without_eta"):
        assert getattr(summary, name) == getattr(view, name), name
