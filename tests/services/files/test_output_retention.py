"""Retention of raw output: what goes after its days, what stays, and clocks that jump."""

import random
from datetime import timedelta
from typing import Any

import pytest

from farm.core.base.ids import AttemptId, digest_of
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.retry import FIRST_PAUSE
from farm.core.operations.retention import StorageRules
from farm.core.results.settle.effects import KeepReport
from farm.services.files.retention import Sweeper
from farm.services.results.explanations.attempts import attempt_view
from farm.store.files.disk_use import free_bytes_inside
from farm.store.results.evidence import add_reports
from farm.wire.agents.protocol import Assignment
from tests.services.files.test_retention import _DAYS_S, events, sweep
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phase


def evidence_rows(farm: FarmRig) -> list[dict[str, Any]]:
    return farm.rows("SELECT * FROM evidence ORDER BY evidence_id")


def kept(farm: FarmRig) -> list[int]:
    return [row["attempt_id"] for row in evidence_rows(farm) if row["body"] is not None]


def test_output_goes_after_its_days_and_the_measurement_stays(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(rounds=2)
    host.run()
    before = farm.matrix(matrix_id)
    farm.clock.advance(timedelta(days=30).total_seconds() + 1)
    count = len(evidence_rows(farm))
    swept = sweep(farm, StorageRules(evidence_keep_days=30))
    assert swept.reports == count
    assert swept.report_bytes == sum(row["body_bytes"] for row in evidence_rows(farm))
    assert kept(farm) == []
    assert farm.matrix(matrix_id) == before
    (event,) = events(farm, "evidence_expired")
    assert event["cause"].startswith(f"{count} reports")
    assert event["cause"].endswith("by the rule of 30 days")
    view = farm.read(attempt_view, AttemptId(kept_attempt(farm)))
    assert (view.evidence, view.evidence_expired_by) == (None, "rule of 30 days")
    assert view.evidence_expired_at == farm.clock.now()


def kept_attempt(farm: FarmRig) -> int:
    attempt_id: int = evidence_rows(farm)[-1]["attempt_id"]
    return attempt_id


def test_output_that_is_younger_than_its_days_stays(farm: FarmRig, host: HostRig) -> None:
    count = len(evidence_rows(farm))
    farm.clock.advance(timedelta(days=29).total_seconds())
    assert sweep(farm, StorageRules(evidence_keep_days=30)).reports == 0
    assert len(kept(farm)) == count > 0


@pytest.mark.invariant("I12")
def test_output_of_an_unfinished_matrix_stays_whatever_the_rules_say(farm: FarmRig, host: HostRig) -> None:
    checks = kept(farm)
    farm.submit(rounds=2)
    (first, *_) = host.exchange().assignments
    host.report(first.attempt_id, good_evidence(first))
    farm.clock.advance(timedelta(days=400).total_seconds())
    rules = StorageRules(evidence_keep_days=1, evidence_limit_bytes=0)
    assert sweep(farm, rules).reports == len(checks)
    assert kept(farm) == [first.attempt_id]


def test_output_that_never_counted_goes_first_then_the_oldest(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=2, devices={"device": "phone-1"})
    (late,) = host.exchange().assignments
    host.clean(late)
    host.exchange([phase(late, AttemptState.RETURNED, "not ready")])
    assert not host.report(late.attempt_id, good_evidence(late)).counted
    farm.clock.advance(FIRST_PAUSE.total_seconds())
    for assignment in host.exchange().assignments:
        host.report(assignment.attempt_id, good_evidence(assignment))
        host.clean(assignment)
    host.run()
    rows = evidence_rows(farm)
    limit_bytes = sum(row["body_bytes"] for row in rows) - 1
    assert sweep(farm, StorageRules(evidence_limit_bytes=limit_bytes)).reports == 1
    assert late.attempt_id not in kept(farm)
    oldest, *others = kept(farm)
    limit_bytes = sum(row["body_bytes"] for row in evidence_rows(farm) if row["body"] is not None) - 1
    assert sweep(farm, StorageRules(evidence_limit_bytes=limit_bytes)).reports == 1
    assert kept(farm) == others
    assert oldest not in others


@pytest.mark.invariant("I4")
@pytest.mark.fault(33)
def test_a_report_that_expired_is_still_known_when_it_comes_again(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=2, devices={"device": "phone-1"})
    assignments: list[Assignment] = []
    host.run(lambda each: assignments.append(each) or good_evidence(each))
    farm.clock.advance(timedelta(days=3).total_seconds())
    sweep(farm, StorageRules(evidence_keep_days=1))
    last = assignments[-1]
    count = len(evidence_rows(farm))
    assert host.report(last.attempt_id, good_evidence(last)).counted
    assert len(evidence_rows(farm)) == count


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_the_room_of_output_that_went_is_free_for_what_comes(farm: FarmRig, host: HostRig) -> None:
    attempt_id = AttemptId(kept_attempt(farm))
    for number in range(60):
        body = random.Random(number).randbytes(1500)
        new = KeepReport(
            attempt_id=attempt_id, digest=digest_of(body), body=body, counted=False, at=farm.clock.now()
        )
        farm.write(add_reports, [new])
    free_bytes = farm.read(free_bytes_inside)
    farm.clock.advance(timedelta(days=3).total_seconds())
    assert sweep(farm, StorageRules(evidence_keep_days=1)).report_bytes > 90_000
    assert farm.read(free_bytes_inside) - free_bytes > 80_000


@pytest.fixture
def sweeper(farm: FarmRig, host: HostRig) -> Sweeper:
    """Of a farm that has the output of two checks."""
    rules = StorageRules(evidence_keep_days=30, blobs_limit_bytes=0)
    return Sweeper(farm.database, farm.blobs, rules, farm.clock)


@pytest.mark.invariant("I10")
@pytest.mark.fault(50)
def test_a_clock_that_jumped_ahead_lets_no_output_go(farm: FarmRig, sweeper: Sweeper) -> None:
    farm.clock.jump(365 * _DAYS_S)
    swept = sweeper()
    assert swept.reports == 0
    assert swept.artifacts == 2, "what can be sent again goes all the same"


def test_a_clock_that_was_put_right_lets_output_go_in_its_time(farm: FarmRig, sweeper: Sweeper) -> None:
    farm.clock.jump(365 * _DAYS_S)
    sweeper()
    farm.clock.jump(-365 * _DAYS_S)
    farm.clock.advance(31 * _DAYS_S)
    assert sweeper().reports == 2


def test_small_corrections_of_the_clock_change_nothing(farm: FarmRig, sweeper: Sweeper) -> None:
    farm.clock.jump(-30.0)
    farm.clock.advance(31 * _DAYS_S)
    farm.clock.jump(60.0)
    assert sweeper().reports == 2
