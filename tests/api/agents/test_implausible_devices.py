"""One device that reports what cannot be is sick; its host and the other devices go on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farm.core.devices.device import Presence
from farm.core.operations.alarm import AlarmKind
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.service_fixture import phone


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path) as farm:
        yield farm


def exchange(agent: HttpAgent, *devices: dict[str, Any]) -> dict[str, Any]:
    agent.seq += 1
    body = json.dumps({"seq": agent.seq, "devices": devices})
    answer = agent.post(f"/sessions/{agent.session_id}/exchange", content=body)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def shown(farm: HttpFarm, name: str) -> dict[str, Any]:
    answer = farm.http.get(f"/api/v1/devices/{name}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.invariant("I3")
@pytest.mark.parametrize(
    "spoilt",
    [
        {"known_fence": 9007199254740990},
        {"cleaned_fence": 10**400},
        {"cleaned_fence": -1},
        {"condition": {"taken_at": "2026-11-20T12:00:00Z", "uptime_s": float("inf")}},
        {"condition": {"taken_at": "2026-11-20T12:00:00Z", "temperatures_c": {"skin": float("nan")}}},
        {"facts": {"memory_bytes": 10**30}},
        {"facts": {"android": "x" * 100_000}},
        {"condition": {"taken_at": "2026-11-20T12:00:00Z", "battery_c": 1e300}},
        {"condition": {"taken_at": "2026-11-20T12:00:00Z", "online_cores": list(range(200)) * 100}},
    ],
    ids=lambda spoilt: ascii(spoilt)[:60],
)
def test_a_device_that_reports_what_cannot_be_is_sick_until_it_reports_what_can(
    farm: HttpFarm, spoilt: dict[str, Any]
) -> None:
    agent = farm.enroll()
    good = [phone(name).model_dump(mode="json") for name in ("phone-1", "phone-2")]
    exchange(agent, *good)
    bad = {
        key: {**(good[0][key] or {}), **value} if isinstance(value, dict) else value
        for key, value in spoilt.items()
    }
    exchange(agent, {**good[0], **bad}, good[1])
    assert [shown(farm, name)["presence"] for name in ("phone-1", "phone-2")] == ["offline", "online"]
    assert str(next(iter(spoilt))) in shown(farm, "phone-1")["detail"]
    (alarm,) = farm.http.get("/api/v1/alarms").json()
    assert (alarm["kind"], alarm["subject_id"]) == (AlarmKind.REPORT_IMPLAUSIBLE, "phone-1")
    # An agent tells facts and conditions once: it repeats that they cannot be.
    exchange(agent, {**good[0], "facts": None, "implausible": "facts.cores is 9999"}, good[1])
    assert shown(farm, "phone-1")["presence"] == "offline"
    exchange(agent, *good)
    assert shown(farm, "phone-1")["presence"] == Presence.ONLINE
    assert farm.http.get("/api/v1/alarms").json() == []
