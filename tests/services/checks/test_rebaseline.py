"""An operator accepts how fast a phone is now: its golden runs are compared with its own from then on."""

import pytest

from farm.core.checks.reference_range import MIN_RUNS_ALONE
from farm.core.checks.reference_run import COOLDOWN
from farm.core.errors import Conflict
from farm.database.transaction import bind_tx
from farm.services.checks.device_detail import device_detail
from farm.services.checks.requested import rebaseline
from farm.services.devices.admin import retire
from farm.wire.documents.devices import DeviceChange, OperatorRequest, RebaselineRequest
from tests.support.farm.reference_fixture import (
    DAY_S,
    REAL,
    alarms,
    answer,
    check_again,
    golden,
    health,
)
from tests.support.farm.service_fixture import FarmRig, HostRig


def accept(farm: FarmRig, device: str = "phone-1") -> DeviceChange:
    asked = RebaselineRequest(by="ann", reason="a new battery")
    return farm.write(bind_tx(rebaseline, now=farm.clock.now()), device, asked)


def make_bad(farm: FarmRig, host: HostRig, ms: float = 26.0) -> None:
    check_again(host, ms)
    farm.clock.advance(COOLDOWN.total_seconds())
    host.exchange()
    assert host.run(answer(ms)) == 1
    assert health(farm) == "bad"


def verdicts(farm: FarmRig) -> list[str]:
    return [
        row["verdict"] for row in farm.rows("SELECT verdict FROM reference_runs ORDER BY reference_run_id")
    ]


@pytest.mark.fault(48)
def test_a_bad_phone_whose_level_is_accepted_is_checked_and_good_and_its_alarm_over(
    farm: FarmRig, phone: HostRig
) -> None:
    make_bad(farm, phone)
    assert alarms(farm) == ["reference_drift phone-1"]
    farm.clock.advance(60)
    change = accept(farm)
    assert change.message.startswith(
        "phone-1 is compared with its own reference runs from now on; the last took 26.0 ms, which was slow."
        " phone-1 is checked next"
    )
    assert alarms(farm) == []
    assert phone.run(answer(26.0)) == 1
    assert (health(farm), alarms(farm)) == ("good", [])
    assert verdicts(farm)[-3:] == ["slow", "slow", "learning"]


def test_who_accepted_a_level_and_why_stands_in_the_events(farm: FarmRig, phone: HostRig) -> None:
    accept(farm)
    (event,) = farm.rows("SELECT actor, cause, subject_id FROM events WHERE kind = 'device_rebaselined'")
    assert (event["actor"], event["subject_id"]) == ("user:ann", "phone-1")
    assert event["cause"] == "20.0 ms, which was learning: a new battery"
    shown = farm.read(device_detail, "phone-1")
    assert shown.rebaselined_at == farm.clock.now()


def test_an_accepted_level_is_a_band_of_its_own_that_is_left_to_both_sides(
    farm: FarmRig, phone: HostRig
) -> None:
    make_bad(farm, phone)
    farm.clock.advance(60)
    accept(farm)
    phone.run(answer(26.0))
    for _ in range(MIN_RUNS_ALONE):
        check_again(phone, 26.0)
    assert verdicts(farm)[-1] == "in_range"
    check_again(phone, 20.0)
    assert (verdicts(farm)[-1], health(farm)) == ("fast", "good")
    check_again(phone, 34.0)
    assert (verdicts(farm)[-1], health(farm)) == ("slow", "suspect")


def test_only_another_accept_takes_a_level_back(farm: FarmRig, phone: HostRig) -> None:
    for number in (1, 2):
        farm.clock.advance(DAY_S)
        assert accept(farm).changed
        check_again(phone, 20.0 * number)
    keys = farm.rows("SELECT DISTINCT reference_key FROM reference_runs")
    assert len(keys) == 3
    assert all(
        " / phone-1 since 2" in row["reference_key"] for row in keys if "since" in row["reference_key"]
    )


def test_what_was_judged_before_stays_and_other_phones_of_the_kind_keep_their_band(
    farm: FarmRig, phone: HostRig
) -> None:
    make_bad(farm, phone)
    before = farm.rows(
        "SELECT reference_run_id, verdict, reference_key FROM reference_runs ORDER BY reference_run_id"
    )
    farm.clock.advance(60)
    accept(farm)
    phone.run(answer(26.0))
    phone.plug_in("phone-2", **REAL)
    assert phone.run(answer(26.0)) == 1
    after = farm.rows(
        "SELECT reference_run_id, verdict, reference_key FROM reference_runs ORDER BY reference_run_id"
    )
    assert after[: len(before)] == before
    assert (after[-1]["verdict"], health(farm, "phone-2")) == ("slow", "suspect")


def test_an_old_slow_run_does_not_cost_an_accepted_phone_its_health_by_a_check_without_time(
    farm: FarmRig, phone: HostRig
) -> None:
    make_bad(farm, phone)
    farm.clock.advance(60)
    accept(farm)
    assert phone.run(lambda each: golden(each, 26.0, said=["reference_failed 139"])) == 1
    assert health(farm) == "good"


def test_a_phone_without_a_reference_run_has_no_level_to_accept(farm: FarmRig, phone: HostRig) -> None:
    phone.plug_in("phone-2", **REAL)
    phone.exchange()
    with pytest.raises(Conflict, match="no reference run yet") as refused:
        accept(farm, "phone-2")
    assert refused.value.hint == "farm device check phone-2"


def test_a_retired_phone_has_no_level_to_accept(farm: FarmRig, phone: HostRig) -> None:
    farm.write(bind_tx(retire, now=farm.clock.now()), "phone-1", OperatorRequest(by="ann"))
    with pytest.raises(Conflict, match="is retired"):
        accept(farm)
