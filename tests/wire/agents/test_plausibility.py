"""What no device can mean is left out of its own report, and fails no other."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from farm.core.devices.condition import Condition, CpuPolicy
from farm.core.devices.device import Cluster, DeviceFacts, Presence
from farm.core.errors import DeviceImplausible
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.wire.agents.plausibility import ReceivedExchange, check_report, read_report
from farm.wire.agents.protocol import DeviceReport, Exchange, Report

FACTS = DeviceFacts(
    serialno="s",
    device_model="m",
    work_root="/data/local/tmp",
    abis=("arm64-v8a", "armeabi-v7a"),
    clusters=(Cluster(cores=(0, 1)), Cluster(cores=(2,))),
)
CONDITION = Condition(
    taken_at=datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC),
    temperatures_c={"skin": 31.5, "soc": 40.0},
    cpus=(CpuPolicy(name="policy0", cores=(0, 1), time_in_state_ms={300_000_000: 10}),),
)
EXCHANGE: TypeAdapter[Exchange] = TypeAdapter(ReceivedExchange)


def report(**changes: Any) -> DeviceReport:
    known = {"device_id": "phone-1", "serial": "s", "presence": Presence.ONLINE, "facts": FACTS}
    return DeviceReport(**{**known, "condition": CONDITION, **changes})


def received(*documents: dict[str, Any], **more: Any) -> Exchange:
    return EXCHANGE.validate_python({"seq": 1, "devices": list(documents), **more})


def test_a_plausible_report_is_the_same_on_both_sides() -> None:
    sent = report()
    assert check_report(sent) is sent
    assert received(sent.model_dump(mode="json")).devices == (sent,)


@pytest.mark.parametrize(
    ("change", "place", "left"),
    [
        ({"facts": replace(FACTS, cores=10**30)}, "facts.cores", lambda found: found.facts == FACTS),
        ({"facts": replace(FACTS, android="x" * 10**5)}, "facts.android", lambda found: found.facts == FACTS),
        (
            {"facts": replace(FACTS, clusters=(*FACTS.clusters, Cluster(cores=(4000,))))},
            "facts.clusters.2.cores.0",
            lambda found: found.facts.clusters[:2] == FACTS.clusters,
        ),
        (
            {"facts": replace(FACTS, abis=("x",) * 5000)},
            "facts.abis",
            lambda found: found.facts == replace(FACTS, abis=()),
        ),
        (
            {"condition": replace(CONDITION, temperatures_c={"skin": 31.5, "soc": 1e300})},
            "condition.temperatures_c.soc",
            lambda found: found.condition.temperatures_c == {"skin": 31.5},
        ),
        (
            {"condition": replace(CONDITION, temperatures_c={"soc": float("nan")})},
            "condition.temperatures_c.soc",
            lambda found: found.condition.temperatures_c == {},
        ),
        (
            {"condition": replace(CONDITION, cpus=(CpuPolicy(name="p" * 1000, cores=(0,)),))},
            "condition.cpus.0.name",
            lambda found: found.condition == replace(CONDITION, cpus=()),
        ),
    ],
)
def test_a_part_that_cannot_be_is_left_out_and_named_by_agent_and_farm(
    change: dict[str, Any], place: str, left: Callable[[DeviceReport], bool]
) -> None:
    sent = report(**change)
    (by_farm,) = received(json.loads(sent.model_dump_json())).devices
    for found in (check_report(sent), by_farm):
        assert found.implausible is not None
        assert found.implausible.startswith(place)
        assert len(found.implausible) <= 2000
        assert left(found)


def test_other_devices_and_the_rest_of_an_exchange_stay_as_they_are() -> None:
    bad = {**report().model_dump(mode="json"), "known_fence": 9007199254740990}
    good = report(device_id="phone-2")
    found = received(bad, good.model_dump(mode="json"), pressure="disk")
    assert found.devices[1] == good
    assert (found.devices[0].known_fence, found.pressure) == (0, "disk")
    assert found.devices[0].implausible is not None
    assert "known_fence is 9007199254740990" in found.devices[0].implausible


def test_a_device_action_that_brought_too_much_back_has_failed_and_says_why() -> None:
    row = {"name": "n", "why": "w", "wanted": "0", "before": None, "now": "x" * 10**6, "state": "refused"}
    found = received(device_actions=[{"device_action_id": 7, "settings": [row]}])
    (action,) = found.device_actions
    assert (action.device_action_id, action.settings) == (7, ())
    assert action.error is not None
    assert "settings.0.now" in action.error


def test_text_for_people_is_cut() -> None:
    cut = report(detail="a" * 10**5).detail
    assert cut is not None
    assert (len(cut), cut[-1]) == (2000, "…")


@pytest.mark.parametrize(
    "document",
    [
        {"seq": 0},
        {"seq": 1, "devices": "none"},
        {"seq": 1, "devices": [7]},
        {"seq": 1, "devices": [{"device_id": "a b", "serial": "s", "presence": "online"}]},
        {"seq": 1, "devices": [{"device_id": "a", "serial": "s" * 300, "presence": "online"}]},
        {"seq": 1, "devices": [{"device_id": "a", "serial": "s", "presence": "online", "further": 1}]},
        {"seq": 1, "devices": [{"device_id": "a", "serial": "s", "presence": "here", "known_fence": -1}]},
        {"seq": 1, "attempts": [{"attempt_id": 1, "fence": -1, "phase": "claimed"}]},
        "nothing",
    ],
    ids=str,
)
def test_what_no_device_brings_about_is_refused_as_a_whole(document: Any) -> None:
    with pytest.raises(ValidationError):
        EXCHANGE.validate_python(document)


def test_a_run_with_a_part_that_cannot_be_has_no_result_and_its_device_is_blamed() -> None:
    evidence = Evidence(fence=7, exit=ExitRecord(code=0, duration_s=1e300), stdout="a line", before=CONDITION)
    found = read_report(Report(evidence=evidence).model_dump_json().encode())
    assert (found.fence, found.stdout, found.before, found.exit) == (7, "a line", CONDITION, None)
    assert found.error is not None
    assert (found.error.code, found.error.blame) == (DeviceImplausible.code, DeviceImplausible.blame)
    assert "evidence.exit.duration_s is 1e+300" in found.error.message


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"evidence": {"fence": -1}}', b'{"evidence": 7}'])
def test_what_is_no_report_is_refused(body: bytes) -> None:
    with pytest.raises(ValidationError):
        read_report(body)
