"""Damaged files of an agent are an incident and an alarm of its host, and keep no device from work."""

from farm.core.base.ids import HostId
from farm.core.operations.alarm import AlarmRules
from farm.services.hosts.views import list_host_views
from farm.services.operations.alarm_scan import AlarmScan
from farm.services.operations.alarms import list_alarms
from farm.wire.agents.protocol import Exchange, ExchangeAnswer
from tests.support.farm.service_fixture import FarmRig, HostRig

NOTICE = "the agent set damaged files aside in /agent: spool/41.unreadable (the report of attempt 41)"


def said(host: HostRig, notice: str | None) -> ExchangeAnswer:
    host.seq += 1
    call = Exchange(seq=host.seq, devices=tuple(host.phones.values()), damaged_files=notice)
    return host.call(call).answer


def scan(farm: FarmRig, rounds: AlarmScan) -> list[str]:
    farm.write(rounds.look, now=farm.clock.now(), up_since=farm.up_since)
    return [alarm.message for alarm in farm.read(list_alarms)]


def test_an_operator_sees_which_files_were_damaged_until_they_are_removed(
    farm: FarmRig, host: HostRig
) -> None:
    rounds = AlarmScan(rules=AlarmRules())
    for _ in range(2):
        said(host, NOTICE)
    (view,) = farm.read(list_host_views, after=HostId(""), limit=10)
    assert [(incident.kind, incident.cause) for incident in view.incidents] == [("files_damaged", NOTICE)]
    assert scan(farm, rounds) == []
    farm.clock.advance(AlarmRules().failing_after.total_seconds())
    said(host, NOTICE)
    (message,) = scan(farm, rounds)
    assert "spool/41.unreadable (the report of attempt 41)" in message
    said(host, None)
    assert scan(farm, rounds) == []
    told = farm.rows("SELECT kind, cause FROM events WHERE subject = 'incident' ORDER BY event_id")
    assert [(row["kind"], row["cause"]) for row in told] == [
        ("incident_opened", f"bench-1: {NOTICE}"),
        ("incident_ended", "bench-1: the damaged files are removed"),
    ]


def test_devices_of_a_host_with_damaged_files_get_work(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=1)
    assert {each.device_id for each in said(host, NOTICE).assignments} == set(host.phones)


def test_more_damage_is_told_as_another_incident(farm: FarmRig, host: HostRig) -> None:
    said(host, NOTICE)
    said(host, f"{NOTICE}, attempts/42.unreadable")
    causes = farm.rows("SELECT cause FROM incidents WHERE ended_at IS NULL")
    assert [row["cause"] for row in causes] == [f"{NOTICE}, attempts/42.unreadable"]
