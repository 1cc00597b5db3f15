"""Live changes: a page is told which of its rows changed, and nothing else."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from farm.core.operations.event import EventSubject
from farm.web.http import live
from farm.web.http.live import LiveChanges, keys_of
from tests.support.farm.http_farm import HttpAgent, HttpFarm, http_farm
from tests.support.farm.processes import eventually
from tests.support.farm.service_fixture import phone


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path) as farm:
        yield farm


def changes(lines: Iterable[str]) -> Iterator[list[str]]:
    for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def plug_in(agent: HttpAgent, device: str) -> None:
    assert agent.exchange(devices=(phone(device),)).status_code == 200


def test_a_page_is_told_of_its_own_rows_only(farm: HttpFarm) -> None:
    agent = farm.enroll()
    plug_in(agent, "phone-1")
    with farm.http.stream("GET", "/live", params={"keys": "devices device-phone-2 matrix-7"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        lines = answer.iter_lines()
        # From here on, nothing is missed.
        assert next(lines) == ": open"
        plug_in(agent, "phone-2")
        keys = changes(lines)
        changed = set(next(keys))
        while changed != {"devices", "device-phone-2"}:
            changed |= set(next(keys))


def test_the_log_is_read_for_no_one_once_all_pages_are_closed(farm: HttpFarm) -> None:
    with farm.http.stream("GET", "/live", params={"keys": "devices"}) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ": open"
        live = farm.app.state.live_changes
        assert live.is_reading
    eventually(lambda: not live.is_reading, "no page is open")
    plug_in(farm.enroll(), "phone-1")
    with farm.http.stream("GET", "/live", params={"keys": "hosts"}) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ": open"
        plug_in(farm.enroll("bench-2"), "phone-2")
        assert next(changes(lines)) == ["hosts"]


def test_a_stream_ends_when_the_farm_stops(farm: HttpFarm) -> None:
    with farm.http.stream("GET", "/live", params={"keys": "devices"}) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ": open"
        farm.stop_holding()
        assert [line for line in lines if line.startswith("data")] == []


def test_a_job_changes_the_rows_of_its_matrix_and_device() -> None:
    subjects = [
        (EventSubject.JOB, "7"),
        (EventSubject.MATRIX, "3"),
        (EventSubject.DEVICE, "phone-1"),
    ]
    assert keys_of(subjects) == {
        "events",
        "points",
        "jobs",
        "matrices",
        "matrix-3",
        "devices",
        "device-phone-1",
    }


def test_what_moves_with_each_job_is_told_at_once_and_then_once_in_a_while(
    farm: HttpFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = LiveChanges(farm.context)
    times = iter([0.0, 1.0, 9.0, 11.0, 12.0])
    monkeypatch.setattr(live.time, "monotonic", lambda: next(times))
    jobs = frozenset({"jobs", "points"})
    assert changes._with_points_in_time(jobs) == jobs
    assert changes._with_points_in_time(jobs) == {"jobs"}
    assert changes._with_points_in_time(frozenset()) == frozenset()
    # What was held back is told though nothing else happened.
    assert changes._with_points_in_time(frozenset()) == {"points"}
    assert changes._with_points_in_time(frozenset()) == frozenset()
