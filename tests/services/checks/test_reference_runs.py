"""Golden runs: what a phone that got slower, hotter or another system comes to."""

import pytest

from farm.core.checks.check_schedule import RECHECK_AFTER
from farm.core.checks.reference_range import MIN_RUNS_ALONE
from farm.core.checks.reference_run import COOLDOWN, MAX_UNFIT
from farm.core.devices.condition import ThermalStatus
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.services.checks.requested import request_check
from farm.services.operations.alarms import clear_by_operator
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.operations import ClearRequest
from tests.services.conftest import on_sqlite_alone
from tests.support.farm.reference_fixture import (
    DAY_S,
    REAL,
    alarms,
    answer,
    check_again,
    golden,
    health,
    last_cause,
    replugged,
)
from tests.support.farm.service_fixture import FarmRig, HostRig, ended


def test_a_run_in_the_band_keeps_the_phone_good(farm: FarmRig, phone: HostRig) -> None:
    check_again(phone, 21.5)
    assert health(farm) == "good"
    verdicts = [
        row["verdict"] for row in farm.rows("SELECT verdict FROM reference_runs ORDER BY reference_run_id")
    ]
    assert verdicts == ["learning"] * MIN_RUNS_ALONE + ["in_range"]


@pytest.mark.fault(46)
def test_a_phone_a_third_slower_is_suspect_and_bad_once_it_is_slow_again_when_cool(
    farm: FarmRig, phone: HostRig
) -> None:
    check_again(phone, 26.0)
    assert health(farm) == "suspect"
    assert "26.0 ms, 30 % slower than the median of 16 runs of 1 device of its kind" in last_cause(farm)
    assert alarms(farm) == []
    farm.clock.advance(COOLDOWN.total_seconds() - 5)
    assert phone.exchange().assignments == ()
    farm.clock.advance(5)
    phone.exchange()
    assert phone.run(answer(26.2)) == 1
    assert health(farm) == "bad"
    assert alarms(farm) == ["reference_drift phone-1"]
    assert farm.rows("SELECT code FROM jobs WHERE kind = 'check' ORDER BY job_id DESC LIMIT 1") == [
        {"code": "check.slow"}
    ]


def test_a_phone_that_was_slow_once_only_is_good_again(farm: FarmRig, phone: HostRig) -> None:
    check_again(phone, 26.0)
    farm.clock.advance(COOLDOWN.total_seconds())
    phone.exchange()
    phone.run(answer(20.1))
    assert health(farm) == "good"


def test_a_bad_phone_that_is_as_fast_as_its_kind_again_is_good_and_its_alarm_over(
    farm: FarmRig, phone: HostRig
) -> None:
    check_again(phone, 30.0)
    farm.clock.advance(COOLDOWN.total_seconds())
    phone.exchange()
    phone.run(answer(30.0))
    assert alarms(farm) == ["reference_drift phone-1"]
    farm.clock.advance(4 * DAY_S)
    replugged(phone)
    phone.run(answer(20.0))
    assert (health(farm), alarms(farm)) == ("good", [])


def make_bad(farm: FarmRig, phone: HostRig, ms: float) -> None:
    check_again(phone, ms)
    farm.clock.advance(COOLDOWN.total_seconds())
    phone.exchange()
    phone.run(answer(ms))
    assert health(farm) == "bad"


@pytest.mark.fault(48)
def test_a_repaired_phone_is_good_by_its_first_run_and_stays_so(farm: FarmRig, phone: HostRig) -> None:
    """The runs from before the repair are among its newest for three days."""
    make_bad(farm, phone, 30.0)
    farm.clock.advance(3600)
    replugged(phone)
    phone.run(answer(20.0))
    assert (health(farm), alarms(farm)) == ("good", [])
    # Out of step with itself by an eighth once, which three runs have to say.
    check_again(phone, 22.5)
    assert health(farm) == "good"


@pytest.mark.fault(48)
def test_a_phone_that_drifted_is_good_by_a_run_as_fast_as_it_was_and_suspect_once_it_drifts_again(
    farm: FarmRig, phone: HostRig
) -> None:
    for ms in (22.5, 22.5):
        check_again(phone, ms)
    farm.clock.advance(COOLDOWN.total_seconds())
    phone.exchange()
    phone.run(answer(22.5))
    assert health(farm) == "bad"
    for _ in range(12):
        check_again(phone, 22.5)
        assert health(farm) == "bad"
    check_again(phone, 20.0)
    assert (health(farm), alarms(farm)) == ("good", [])
    for ms in (22.5, 22.5):
        check_again(phone, ms)
    assert health(farm) == "suspect"


def test_a_warm_phone_is_not_judged(farm: FarmRig, phone: HostRig) -> None:
    check_again(phone, 40.0, ThermalStatus.LIGHT)
    assert health(farm) == "good"
    (row,) = farm.rows(
        "SELECT verdict, unfit_reasons FROM reference_runs ORDER BY reference_run_id DESC LIMIT 1"
    )
    assert row["verdict"] == "unfit"
    assert "LIGHT" in row["unfit_reasons"]


def test_a_suspect_phone_that_never_cools_is_bad_after_a_bounded_number_of_checks(
    farm: FarmRig, phone: HostRig
) -> None:
    check_again(phone, 26.0)
    done = 0
    while health(farm) == "suspect":
        farm.clock.advance(COOLDOWN.total_seconds())
        phone.exchange()
        done += phone.run(answer(26.0, ThermalStatus.MODERATE))
        assert done <= MAX_UNFIT
    assert (health(farm), done) == ("bad", MAX_UNFIT)


def test_a_phone_that_is_faster_than_its_kind_is_told_of_and_stays_good(
    farm: FarmRig, phone: HostRig
) -> None:
    check_again(phone, 15.0)
    assert health(farm) == "good"
    assert alarms(farm) == ["reference_drift phone-1"]
    check_again(phone, 20.0)
    assert alarms(farm) == []


@pytest.mark.fault(48)
def test_a_phone_that_gets_slower_week_by_week_within_its_range_is_suspect_then_bad_with_its_trend(
    farm: FarmRig, phone: HostRig
) -> None:
    for _ in range(10):
        check_again(phone, 20.0)
    check_again(phone, 22.4)
    assert health(farm) == "good"
    check_again(phone, 22.5)
    assert health(farm) == "suspect"
    farm.clock.advance(COOLDOWN.total_seconds())
    phone.exchange()
    phone.run(answer(22.6))
    assert health(farm) == "bad"
    assert "it gets slower: 22.5 ms in its last 3 runs, 20.0 ms in" in last_cause(farm)


@on_sqlite_alone
def test_a_phone_that_stays_slow_stays_bad_however_often_it_is_checked(farm: FarmRig, phone: HostRig) -> None:
    for _ in range(2 * MIN_RUNS_ALONE):
        check_again(phone, 26.0)
    assert health(farm) == "bad"
    assert alarms(farm) == ["reference_drift phone-1"]


def test_a_slow_phone_is_not_good_because_its_reference_run_ends_no_more(
    farm: FarmRig, phone: HostRig
) -> None:
    def untimed(assignment: Assignment) -> Evidence:
        return golden(assignment, 20.0, said=["reference_failed 139"])

    check_again(phone, 26.0)
    farm.clock.advance(COOLDOWN.total_seconds())
    phone.exchange()
    assert phone.run(untimed) == 1
    assert health(farm) == "bad"
    assert "did not end in a way that can be timed; the last one was slow" in last_cause(farm)
    replugged(phone)
    assert phone.run(answer(20.0)) == 1
    assert health(farm) == "good"
    farm.clock.advance(DAY_S)
    phone.exchange()
    farm.write(bind_tx(request_check, now=farm.clock.now()), "phone-1", OperatorRequest(by="ann"))
    assert phone.run(untimed) == 1
    assert health(farm) == "good"


def test_a_run_on_other_cores_is_compared_with_those_on_the_same(farm: FarmRig, phone: HostRig) -> None:
    farm.clock.advance(DAY_S)
    phone.exchange()
    farm.write(bind_tx(request_check, now=farm.clock.now()), "phone-1", OperatorRequest(by="ann"))
    assert phone.run(lambda each: golden(each, 40.0, said=["reference_cores taskset 80"])) == 1
    assert health(farm) == "good"
    last = farm.rows(
        "SELECT verdict, reference_key FROM reference_runs ORDER BY reference_run_id DESC LIMIT 1"
    )
    assert last == [{"verdict": "learning", "reference_key": "Nimbus 5 / host CPU / n/5:14/A1 / taskset 80"}]


def test_what_a_person_has_seen_to_is_not_told_again_by_the_next_check(farm: FarmRig, phone: HostRig) -> None:
    for _ in range(2):
        check_again(phone, 26.0)
    farm.write(
        bind_tx(clear_by_operator, now=farm.clock.now()),
        1,
        ClearRequest(by="ann", reason="a battery is ordered"),
    )
    farm.clock.advance(DAY_S / 2)
    replugged(phone)
    assert phone.run(answer(26.0)) == 1
    assert alarms(farm) == []
    check_again(phone, 26.0)
    assert alarms(farm) == ["reference_drift phone-1"]


def test_a_new_system_begins_a_new_band(farm: FarmRig, phone: HostRig) -> None:
    phone.plug_in("phone-1", **{**REAL, "build_fingerprint": "n/5:15/B2"})
    check_again(phone, 40.0)
    assert health(farm) == "good"
    last = farm.rows(
        "SELECT verdict, reference_key FROM reference_runs ORDER BY reference_run_id DESC LIMIT 1"
    )
    assert last == [{"verdict": "learning", "reference_key": "Nimbus 5 / host CPU / n/5:15/B2"}]


def test_virtual_phones_teach_phones_nothing_nor_those_of_other_hosts(farm: FarmRig) -> None:
    for name in ("bench-1", "bench-2"):
        host = farm.host(name)
        host.plug_in(f"virtual-{name}", device_model="Nimbus 5", build_fingerprint="n/5:14/A1")
        host.plug_in(f"real-{name}", **REAL)
        host.run(answer(20.0))
    keys = farm.rows("SELECT device_id, reference_key FROM reference_runs ORDER BY device_id")
    assert [row["reference_key"] for row in keys] == [
        "Nimbus 5 / host CPU / n/5:14/A1",
        "Nimbus 5 / host CPU / n/5:14/A1",
        "virtual phone on bench-1",
        "virtual phone on bench-2",
    ]


def test_a_slow_phone_fails_alone_whatever_happens_beside_it(farm: FarmRig, phone: HostRig) -> None:
    phone.plug_in("phone-2", **REAL)
    phone.run(answer(20.0))
    check_again(phone, 26.0)
    assert (health(farm, "phone-1"), health(farm, "phone-2")) == ("suspect", "good")
    assert farm.rows("SELECT count(*) n FROM incidents") == [{"n": 0}]


@pytest.mark.long
@on_sqlite_alone
def test_a_phone_that_keeps_failing_is_checked_with_increasing_back_off(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-1", **REAL)

    def broken(assignment: Assignment) -> Evidence:
        return ended(assignment, "shell_exit 0\n", code=1)

    assert host.run(broken) == 1
    assert health(farm) == "bad"
    done = 0
    for _ in range(7 * 24):
        farm.clock.advance(3600)
        done += host.run(broken)
    # After 1, 2, 4, 8, 16 hours, and daily from then on.
    assert 9 <= done <= 11
    for _ in range(60):
        farm.clock.advance(RECHECK_AFTER.total_seconds())
        replugged(host)
        done += host.run(broken)
    assert done <= 13
    farm.clock.advance(DAY_S)
    host.run(answer(20.0))
    assert health(farm) == "good"
