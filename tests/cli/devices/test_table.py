"""Phones as operators see them, at 80 columns and without colours."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from farm.cli.devices.report import ceiling_text, device_report, device_table
from farm.core.devices.condition import Condition, ThermalStatus
from farm.core.devices.device import Blocker, DeviceFacts, Presence
from farm.core.devices.remediation import advice, sort_for_display
from farm.core.results.ceiling_history import CeilingHistory
from farm.core.upkeep.recovery import FailureMode, Recovery, RecoveryAttempt, RecoveryStep
from farm.presentation.device_state import (
    StateClass,
    device_state_text,
    find_remedy,
    is_found,
    since_text,
)
from farm.presentation.text import local_time_text
from farm.wire.documents.devices import DeviceDetail, DeviceView
from tests.support.sample_views import NOON, device_view

FACTS = DeviceFacts(serialno="phone-1", device_model="Pixel 7a", work_root="/data/local/tmp", cores=8)


def shown(renderable: RenderableType, width: int = 80) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(renderable)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def detail(**changes: object) -> DeviceDetail:
    story = [
        {"at": NOON, "actor": "user:anna", "kind": "device_cordoned", "from_state": "active"}
        | {"to_state": "cordoned", "cause": "[red] smoke"}
    ]
    attempts = [
        {"attempt_id": 7, "job_id": 3, "kind": "check", "state": "finished", "outcome": "failed"}
        | {"code": "check.failed", "claimed_at": NOON}
    ]
    fields = {"facts": FACTS, "queued_jobs": 2, "device_actions": (), "attempts": attempts, "events": story}
    return DeviceDetail.model_validate({**dict(device_view()), **fields, **changes})


def test_a_phone_is_one_line_and_a_sick_one_has_a_line_of_what_to_do() -> None:
    phones = [
        device_view(label="bench-a", since=None),
        device_view(
            device_id="phone-2",
            presence="unauthorized",
            detail="adb state: unauthorized",
            blocked_by=("not_online",),
            advice="unlock it",
            since=None,
        ),
    ]
    assert shown(device_table(phones)) == [
        "device   model                host  state         since",
        "bench-a  Pixel 7a, Tensor G2  desk  free              -",
        "phone-2  Pixel 7a, Tensor G2  desk  unauthorized      -",
        "",
        "phone-2: unlock it",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "free"),
        ({"blocked_by": ("busy", "not_cleaned"), "job_id": 7}, "running job 7"),
        ({"blocked_by": ("not_cleaned",)}, "being cleaned up"),
        (
            {"blocked_by": ("reserved", "busy"), "job_id": 7, "reserved_by": "anna", "reserved_until": NOON},
            None,
        ),
        ({"blocked_by": ("cordoned", "busy"), "job_id": 7}, "cordoned, finishing job 7"),
        ({"blocked_by": ("health_unknown", "busy"), "job_id": 7}, "being checked (job 7)"),
        ({"blocked_by": ("health_unknown",)}, "awaiting check"),
        ({"blocked_by": ("not_online",), "presence": "wrong_mode"}, "in recovery/bootloader"),
        ({"blocked_by": ("session_not_live", "not_online")}, "agent not connected"),
        ({"blocked_by": ("of_a_newer_farm",)}, "of a newer farm"),
    ],
)
def test_a_state_is_said_in_few_words(changes: dict[str, object], words: str | None) -> None:
    said = device_state_text(device_view(**changes))
    assert said == (words or f"reserved by anna until {local_time_text(NOON)}, finishing job 7")


def test_every_state_has_words_and_none_is_a_code() -> None:
    for blocker in Blocker:
        for presence in set(Presence) - {Presence.ONLINE}:
            said = device_state_text(device_view(blocked_by=(blocker,), presence=presence))
            assert "_" not in said


def test_the_operators_page_explains_every_state() -> None:
    page = (Path(__file__).parents[3] / "docs" / "devices.md").read_text(encoding="utf-8")
    explained = "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| "))
    for blocker in set(Blocker) - {Blocker.BUSY, Blocker.RESERVED, Blocker.DEVICE_ACTION}:
        for presence in set(Presence) - {Presence.ONLINE}:
            said = device_state_text(device_view(blocked_by=(blocker,), presence=presence))
            assert said in explained


@pytest.mark.parametrize(
    ("passed", "words"),
    [(timedelta(seconds=42), "42 s"), (timedelta(hours=47), "47 h 0 min"), (timedelta(days=9), "9 days")],
)
def test_since_when_is_told_as_coarsely_as_it_matters(passed: timedelta, words: str) -> None:
    assert since_text(device_view(), NOON + passed) == words
    assert since_text(device_view(), NOON - passed) == "0 s"


def test_a_phone_that_needs_no_one_has_no_line() -> None:
    for changes in ({}, {"blocked_by": ("busy",)}, {"blocked_by": ("reserved",), "advice": "release it"}):
        assert find_remedy(device_view(**changes)) is None


def test_a_bad_phone_says_why_and_what_to_do() -> None:
    bad = device_view(blocked_by=("health_bad",), why="the push was damaged", advice="mend it")
    assert find_remedy(bad) == "phone-1: the push was damaged: mend it"
    assert find_remedy(device_view(blocked_by=("cordoned",), why="smoke")) == "phone-1: cordoned: smoke"


@pytest.mark.parametrize("blocker", [Blocker.PENDING, Blocker.CORDONED, Blocker.RESERVED, Blocker.HEALTH_BAD])
def test_a_phone_whose_label_has_blanks_is_quoted_in_what_is_to_be_typed(blocker: Blocker) -> None:
    told = advice(blocker, Presence.ONLINE, name="by the door", host="h")
    assert told is not None
    assert "'by the door'" in told


def test_there_is_advice_for_all_that_a_person_must_see_to() -> None:
    to_see_to = [
        Blocker.SESSION_NOT_LIVE,
        Blocker.HOST_DRAINING,
        Blocker.PENDING,
        Blocker.CORDONED,
        Blocker.RETIRED,
        Blocker.RESERVED,
        Blocker.HEALTH_BAD,
    ]
    for blocker in Blocker:
        told = advice(blocker, Presence.ONLINE, name="p", host="h")
        assert (told is not None) == (blocker in to_see_to)
    for presence in Presence:
        told = advice(Blocker.NOT_ONLINE, presence, name="p", host="h")
        assert (told is None) == (presence in (Presence.ONLINE, Presence.BOOTING))


def test_a_decision_is_told_before_what_the_phone_does_in_between() -> None:
    found = [Blocker.NOT_ONLINE, Blocker.RETIRED, Blocker.HEALTH_BAD]
    assert sort_for_display(found) == [Blocker.RETIRED, Blocker.NOT_ONLINE, Blocker.HEALTH_BAD]


def test_one_phone_fits_on_one_screen_with_all_that_is_known() -> None:
    condition = Condition(taken_at=NOON, thermal_status=ThermalStatus.LIGHT, skin_c=31.25, charging=True)
    view = detail(label="bench-a", tags=("rooted",), condition=condition, waiting_for=("the device is bad",))
    text = "\n".join(shown(device_report(view)))
    for said in (
        "bench-a (phone-1)",
        "rooted",
        "unit 1",
        "8 cores",
        "thermal LIGHT, skin 31.2 °C",
        "2 jobs",
        "check.failed",
        "[red] smoke",
        "the device is bad",
        "/data/local/tmp",
    ):
        assert said in text
    assert len(shown(device_report(view))) < 40


def test_a_phone_no_one_knows_anything_of_is_shown_all_the_same() -> None:
    unknown = {"device_model": None, "soc": None, "facts": None, "attempts": (), "events": (), "unit": None}
    assert "unknown device" in "\n".join(shown(device_report(detail(**unknown))))
    assert "unknown device" in shown(device_table([device_view(device_model=None, soc=None)]))[1]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_nothing_is_cut_off(width: int) -> None:
    long: DeviceView = device_view(
        blocked_by=("health_bad",), why="a reason of many words " * 9, advice="mend it", host="a-long-name"
    )
    for page in (device_table([long]), device_report(detail(why="many words " * 30))):
        assert not any("…" in line for line in shown(page, width))


def test_a_phone_that_its_agent_tries_to_have_back_says_what_was_tried_and_what_comes() -> None:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    tries = (RecoveryAttempt(step=RecoveryStep.RECONNECT, at=at, result="reconnected by adb"),)
    climbing = Recovery(failure_mode=FailureMode.OFFLINE, tries=tries, next=RecoveryStep.POWER_CYCLE)
    changes = {"blocked_by": ("not_online",), "presence": "offline", "advice": "replug it"}
    assert find_remedy(device_view(**changes, recovery=climbing)) == (
        "phone-1: tried reconnect; next: power cycle: replug it"
    )
    ended = Recovery(failure_mode=FailureMode.OFFLINE, tries=tries, failed=True)
    assert (
        find_remedy(device_view(**changes, recovery=ended))
        == "phone-1: tried reconnect; no effect: replug it"
    )


def test_that_a_busy_phone_is_not_clean_goes_without_saying() -> None:
    assert sort_for_display([Blocker.BUSY, Blocker.NOT_CLEANED]) == [Blocker.BUSY]
    assert sort_for_display([Blocker.NOT_CLEANED]) == [Blocker.NOT_CLEANED]


def test_a_clock_that_is_limited_under_load_says_how_far_how_often_and_when() -> None:
    history = CeilingHistory(
        name="policy4",
        hardware_hz=2_367_000_000,
        lowest_hz=1_418_000_000,
        limited_runs=3,
        runs=20,
        first_s=20.4,
        last_at=NOON,
    )
    assert ceiling_text(history) == (
        "policy4 down to 1.42 of 2.37 GHz in 3 of 20 runs;"
        f" 20 s after the start at the earliest, last {local_time_text(NOON)}"
    )
    assert any(
        "policy4 down to 1.42" in line for line in shown(device_report(detail(ceilings=(history,))), 120)
    )


def test_a_list_is_narrowed_by_words_and_by_state() -> None:
    busy = device_view(tags=("lab",), job_id=7, blocked_by=(Blocker.BUSY,))
    assert is_found(busy, "", None)
    assert is_found(busy, "pixel LAB desk", StateClass.BUSY)
    assert not is_found(busy, "pixel 8", None)
    assert not is_found(busy, "", StateClass.FREE)
