"""A USB controller that takes no further phone is told of, and keeps no phone that is there from work."""

from datetime import timedelta

import pytest

from farm.core.base.ids import HostId, JobId
from farm.core.checks.failures import find_usb_full_cause
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS
from farm.core.operations.alarm import AlarmRules
from farm.database.transaction import bind_tx
from farm.services.hosts.admin import retire_host
from farm.services.hosts.views import list_host_views
from farm.services.jobs.pending_reasons import job_waiting
from farm.services.operations.alarm_scan import AlarmScan
from farm.services.operations.alarms import list_alarms
from farm.wire.agents.protocol import Exchange, ExchangeAnswer, FullController
from farm.wire.documents.devices import OperatorRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

FULL = FullController(controller="0000:00:14.0", message="can't set config #1, error -28")
OTHER = FullController(controller="0000:05:00.0", message="Error while assigning device slot ID")


def said(host: HostRig, *full: FullController, pressure: str | None = None) -> ExchangeAnswer:
    """One exchange of a host whose agent has read its kernel's log."""
    host.seq += 1
    devices = tuple(host.phones.values())
    call = Exchange(seq=host.seq, devices=devices, full_controllers=full, pressure=pressure)
    return host.call(call).answer


def incidents(farm: FarmRig) -> list[tuple[str, bool]]:
    rows = farm.rows("SELECT kind, ended_at FROM incidents ORDER BY incident_id")
    return [(row["kind"], row["ended_at"] is None) for row in rows]


def lose(farm: FarmRig) -> None:
    """Let nothing be heard of any agent until it is given up."""
    for patience in (DEFAULT_TIMEOUTS.silent_after, DEFAULT_TIMEOUTS.lost_after):
        farm.clock.advance((patience + timedelta(seconds=1)).total_seconds())
        farm.reap()


@pytest.mark.fault(20)
def test_a_full_controller_is_an_incident_that_names_it_and_is_over_when_its_agent_says_no_more_of_it(
    farm: FarmRig, host: HostRig
) -> None:
    said(host, FULL)
    said(host, FULL)
    (view,) = farm.read(list_host_views, after=HostId(""), limit=10)
    (incident,) = view.incidents
    assert (incident.kind, incident.devices) == ("usb_full", ())
    assert "0000:00:14.0 (can't set config #1, error -28)" in incident.cause
    assert "another controller" in incident.cause
    said(host)
    assert incidents(farm) == [("usb_full", False)]
    told = farm.rows("SELECT kind, cause FROM events WHERE subject = 'incident' ORDER BY event_id")
    assert [row["kind"] for row in told] == ["incident_opened", "incident_ended"]
    assert told[1]["cause"] == "bench-1: the kernel says no more of it"


@pytest.mark.fault(20)
def test_phones_of_a_host_with_a_full_controller_get_work_and_no_one_is_told_to_wait_for_it(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(rounds=1)
    first = said(host, FULL).assignments
    assert {each.device_id for each in first} == set(host.phones)
    (queued, *_) = farm.rows("SELECT job_id FROM jobs WHERE state = 'queued' ORDER BY job_id")
    waiting = farm.read(job_waiting, JobId(queued["job_id"]))
    assert "usb_full" not in waiting.model_dump_json()
    for each in first:
        assert host.report(each.attempt_id, good_evidence(each)).counted
        host.clean(each)
    assert len(said(host, FULL).assignments) == len(host.phones)
    assert incidents(farm) == [("usb_full", True)]


@pytest.mark.fault(20)
def test_a_second_controller_that_is_full_is_told_of_with_the_first(farm: FarmRig, host: HostRig) -> None:
    said(host, FULL)
    said(host, FULL, OTHER, pressure="the disk is full")
    assert incidents(farm) == [("usb_full", False), ("pressure", True), ("usb_full", True)]
    (cause,) = farm.rows("SELECT cause FROM incidents WHERE kind = 'usb_full' AND ended_at IS NULL")
    assert cause["cause"] == find_usb_full_cause({each.controller: each.message for each in (FULL, OTHER)})


@pytest.mark.fault(20)
def test_a_controller_that_stays_full_is_an_alarm_until_it_is_not(farm: FarmRig, host: HostRig) -> None:
    rounds = AlarmScan(rules=AlarmRules())
    for _ in range(2):
        said(host, FULL)
        farm.write(rounds.look, now=farm.clock.now(), up_since=farm.up_since)
        farm.clock.advance(AlarmRules().failing_after.total_seconds())
    said(host, FULL)
    farm.write(rounds.look, now=farm.clock.now(), up_since=farm.up_since)
    (alarm,) = farm.read(list_alarms)
    assert alarm.kind == "host_incident"
    assert "0000:00:14.0" in alarm.message
    said(host)
    farm.write(rounds.look, now=farm.clock.now(), up_since=farm.up_since)
    assert farm.read(list_alarms) == []


@pytest.mark.fault(20, 27)
def test_what_an_agent_said_of_its_host_is_over_when_it_is_lost_permanently(
    farm: FarmRig, host: HostRig
) -> None:
    said(host, FULL, pressure="the disk is full")
    farm.clock.advance((DEFAULT_TIMEOUTS.silent_after + timedelta(seconds=1)).total_seconds())
    farm.reap()
    assert incidents(farm) == [("pressure", True), ("usb_full", True)]
    lose(farm)
    assert incidents(farm) == [("pressure", False), ("usb_full", False)]
    ended = farm.rows("SELECT DISTINCT cause FROM events WHERE kind = 'incident_ended'")
    assert [row["cause"] for row in ended] == ["bench-1: its agent does not report any more"]
    host.restart()
    said(host, FULL)
    farm.reap()
    assert incidents(farm)[2:] == [("usb_full", True)]


@pytest.mark.fault(20, 52)
def test_what_an_agent_said_of_its_host_is_over_when_that_is_retired(farm: FarmRig, host: HostRig) -> None:
    said(host, FULL, pressure="the disk is full")
    asked = OperatorRequest(by="ann", reason="it is sold")
    farm.write(bind_tx(retire_host, now=farm.clock.now()), host.host_id, asked)
    assert incidents(farm) == [("pressure", False), ("usb_full", False)]
