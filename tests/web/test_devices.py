"""Pages of devices: which are shown, what runs on them, and their conditions over time."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.units import duration_text
from farm.web.app import create_app_with_pages
from farm.web.pages import devices
from tests.support.farm.http_farm import HttpFarm, http_farm, served
from tests.support.farm.reference_fixture import phone_with_band
from tests.support.farm.service_fixture import FarmRig, phone
from tests.web.conftest import WARM, PageFarm, words_of


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    """A farm with seven devices on two hosts."""
    folder: Path = tmp_path_factory.mktemp("many")
    with http_farm(folder) as farm:
        for host, numbers in (("bench-1", range(4)), ("bench-2", range(4, 7))):
            reports = tuple(phone(f"phone-{number}") for number in numbers)
            assert farm.enroll(host).exchange(devices=reports).status_code == 200
        yield farm


def listed(farm: HttpFarm, path: str) -> list[str]:
    """Return the devices of a list over all of its pages."""
    found: list[str] = []
    while path:
        answer = farm.http.get(path)
        found += re.findall(r'<h2><a href="/devices/([^"]+)"', answer.text)
        (path,) = re.findall(r'href="(/devices\?[^"]*after=[^"]+)"', answer.text) or [""]
        path = path.replace("&amp;", "&")
    return found


def test_devices_are_found_on_all_pages_of_the_list(many: HttpFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_CARDS", 2)
    everyone = [f"phone-{number}" for number in range(7)]
    assert listed(many, "/devices") == everyone
    assert listed(many, "/devices?find=BENCH-2+phone") == everyone[4:]
    # Each is in one state.
    states = ("busy", "free", "waits", "down")
    assert sorted(name for state in states for name in listed(many, f"/devices?state={state}")) == everyone
    nothing = many.http.get("/devices?find=pixel")
    assert "No device matches." in words_of(nothing)


def test_a_card_says_what_runs(tmp_path: Path) -> None:
    rig = FarmRig(tmp_path)
    try:
        host = rig.host()
        host.plug_in("virtual-1")
        rig.variant()
        rig.variant("int8-core")
        host.earn_health()
        rig.submit(name="nightly")
        host.exchange()
    finally:
        rig.close()
    with http_farm(tmp_path) as farm:
        words = words_of(farm.http.get("/devices"))
        assert "running job" in words
        assert "round 1 of matrix 1" in words
        words = words_of(farm.http.get("/devices/virtual-1"))
        assert "jobs of matrix 1 ; next is job" in words


def test_conditions_are_those_that_were_measured(pages: PageFarm) -> None:
    answer = pages.http.get("/devices/virtual-1")
    rows = list(csv.DictReader(io.StringIO(pages.http.get("/devices/virtual-1/conditions.csv").text)))
    assert rows
    assert {row["start_battery_c"] for row in rows} == {str(WARM.battery_c)}
    assert answer.text.count('data-battery="31.5"') == len(rows)
    assert answer.text.count('data-skin="33.25"') == len(rows)
    assert [int(row["attempt_id"]) for row in rows] == sorted(
        (int(row["attempt_id"]) for row in rows), reverse=True
    )


def test_what_a_device_does_not_report_is_not_drawn(pages: PageFarm) -> None:
    answer = pages.http.get("/devices/virtual-2")
    assert "neither temperatures nor limits" in words_of(answer)
    assert "data-plot" not in answer.text


def test_reference_runs_have_a_plot_a_table_and_a_file(tmp_path: Path) -> None:
    rig = FarmRig(tmp_path)
    phone_with_band(rig)
    rig.close()
    app = create_app_with_pages(FarmConfig(data_dir=tmp_path), SystemClock())
    with served(app) as (url, _), httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
        page = http.get("/devices/phone-1").text.split("<h2>Reference runs</h2>")[1].split("</section>")[0]
        rows = list(csv.DictReader(io.StringIO(http.get("/devices/phone-1/reference.csv").text)))
        assert http.get("/devices/nothing/reference.csv").status_code == 404
    assert 'role="img"' in page
    assert 'href="/devices/phone-1/reference.csv"' in page
    assert rows
    assert re.findall(r'<td class="number">(\d+)</td>', page) == [row["job_id"] for row in rows]
    assert re.findall(r'data-of="time">([^<]+)<', page) == [
        duration_text(float(row["value_ns"])) for row in rows
    ]
