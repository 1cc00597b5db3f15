"""Pages: what they show is what the API answers, in headers that let nothing foreign run."""

import csv
import io
import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from farm.core.base.units import ratio_text
from farm.presentation.trends import csv_lines
from farm.web.http.templates import prose_html
from farm.web.pages import matrices, overview
from farm.wire.base import MAX_LIST_PAGE
from farm.wire.documents.results.history import SeriesHistory
from tests.support.farm.http_farm import http_farm
from tests.support.farm.service_fixture import phone
from tests.web.conftest import HOSTILE, PageFarm, parsed, words_of

PATHS = (
    "/",
    "/wall",
    "/devices",
    "/devices/virtual-1",
    "/matrices",
    "/matrices/1",
    "/matrices/2",
    "/matrices/3",
    "/speedups",
    "/speedups?matrix=1",
    "/speedups?pivot=true",
    "/speedups?by=device&candidate=int8",
    "/speedups?by=soc",
    "/history",
    "/changes",
    "/changes/1",
    "/cells/1",
    "/cells/2",
    "/cells/6",
    "/cells/9",
    "/attempts/1",
    "/attempts/3",
    "/attempts/25",
    "/hosts",
    "/variants",
    "/harnesses",
    "/imports",
    "/imports/2",
    "/imports/3",
    "/imports/results",
    "/alarms",
    "/alarms?cleared=true",
    "/events",
)


@pytest.mark.parametrize("path", PATHS)
def test_a_page_has_strict_headers_and_nothing_inline(pages: PageFarm, path: str) -> None:
    answer = pages.http.get(path)
    assert answer.status_code == 200, answer.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    elements = parsed(answer.text)
    assert elements.inline == []
    assert len(elements.ids) == len(set(elements.ids))
    assert "http://" not in answer.text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "https://" not in answer.text


@pytest.mark.parametrize("path", PATHS)
def test_a_page_that_the_browser_has_is_not_sent_again(pages: PageFarm, path: str) -> None:
    tag = pages.http.get(path).headers["etag"]
    for _ in range(20):
        again = pages.http.get(path, headers={"If-None-Match": tag})
        if again.status_code == 304:
            break
        # Ages change from second to second.
        tag = again.headers["etag"]
    assert again.status_code == 304
    assert again.content == b""
    assert again.headers["content-security-policy"]


def test_text_of_people_is_escaped(pages: PageFarm) -> None:
    for path in ("/", "/matrices", f"/matrices/{pages.broken}"):
        answer = pages.http.get(path)
        assert "<script>alert" not in answer.text
        assert HOSTILE in "".join(parsed(answer.text).text)


def test_commands_in_a_text_are_shown_as_code_and_all_else_is_escaped(pages: PageFarm) -> None:
    answer = pages.http.get("/matrices/999999", headers={"Accept": "text/html"})
    assert "<code>farm matrix list</code> shows them all" in answer.text
    assert "<code>farm attempt show" in pages.http.get(f"/matrices/{pages.broken}").text
    assert prose_html("`<b>` & one") == "<code>&lt;b&gt;</code> &amp; one"
    assert prose_html("a ` that is alone, <b>") == "a ` that is alone, &lt;b&gt;"


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/", "work"),
        ("/", "devices"),
        ("/", "alarms"),
        ("/", "throughput"),
        ("/devices", "grid"),
        ("/devices/virtual-1", "detail"),
        ("/matrices", "rows"),
        ("/matrices/1", "progress"),
        ("/matrices/1", "cells"),
        ("/speedups", "blocks"),
        ("/history", "trends"),
        ("/changes", "rows"),
        ("/changes/1", "evidence"),
        ("/cells/2", "explanation"),
        ("/cells/2", "runs"),
        ("/cells/9", "runs"),
        ("/attempts/3", "run"),
        ("/hosts", "rows"),
        ("/events", "rows"),
        ("/alarms", "rows"),
    ],
)
def test_a_part_of_a_page_is_what_the_page_has_there(pages: PageFarm, path: str, part: str) -> None:
    whole = pages.http.get(path).text
    fragment = pages.http.get(path, params={"part": part}).text
    assert "<html" not in fragment
    # Ages change between two requests.
    assert _without_ages(fragment) in _without_ages(whole)
    assert f'id="part-{part}"' in whole


def _without_ages(html: str) -> str:
    return re.sub(r"\d+ (?:s|min|h)\b", "", html)


def test_speedups_are_those_of_the_api(pages: PageFarm) -> None:
    views = pages.http.get("/api/v1/speedups", params={"matrix_id": pages.finished}).json()
    assert len(views) == 2
    words = words_of(pages.http.get("/speedups", params={"matrix": pages.finished}))
    for view in views:
        assert ratio_text(view["speedup"]) in words
        assert (
            f"{ratio_text(view['ci_low']).rstrip('x')} to {ratio_text(view['ci_high']).rstrip('x')}" in words
        )
    assert "faster" in words


def test_a_cell_that_failed_is_not_one_that_did_not_run(pages: PageFarm) -> None:
    broken = pages.http.get(f"/matrices/{pages.broken}").text
    assert broken.count('<td class="cell failed">') == 2
    assert broken.count('<td class="cell valid">') == 2
    views = pages.http.get(f"/api/v1/matrices/{pages.broken}").json()["cell_list"]
    problems = [attempt for view in views for attempt in view["attempt_by_problem"].values()]
    assert problems
    assert all(f'href="/attempts/{attempt}"' in broken for attempt in problems)
    assert "show ID" not in broken
    queued = pages.http.get(f"/matrices/{pages.queued}").text
    assert queued.count('<td class="cell not-run">') == 4


def test_filters_stand_in_the_address(pages: PageFarm) -> None:
    found = words_of(pages.http.get("/matrices", params={"name": "precisions"}))
    assert "two precisions" in found
    assert "waits" not in found
    assert "farm matrix list --name=precisions" in found
    assert "No matrix matches." in words_of(pages.http.get("/matrices", params={"name": "nothing"}))
    assert "No device matches." in words_of(pages.http.get("/devices", params={"find": "galaxy"}))
    assert "No event matches." in words_of(pages.http.get("/events", params={"actor": "zoe"}))
    assert "No comparison to show." in words_of(pages.http.get("/speedups", params={"since": "1m"}))


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/matrices/99", 404, "there is no matrix 99"),
        ("/cells/99", 404, "no cell 99"),
        ("/attempts/9999", 404, "no attempt 9999"),
        ("/devices/nothing", 404, "nothing"),
        ("/changes/99", 404, "99"),
        ("/history?model=vgg", 404, "known here: mobilenet_v2"),
        ("/speedups?model=vgg", 404, "known here: mobilenet_v2"),
        ("/matrices/abc", 422, "matrix_id: must be a whole number"),
        ("/matrices?since=soon", 422, "neither a date nor a duration"),
        ("/speedups?at=2999-01-01", 422, "lies in the future"),
        ("/events?kind=nonsense", 422, "no event is called"),
        ("/nope", 404, "The farm has no page /nope."),
        ("/jobs/3", 404, "The farm has no page /jobs/3."),
    ],
)
def test_an_error_is_a_page_that_says_what_to_do(pages: PageFarm, path: str, status: int, words: str) -> None:
    answer = pages.http.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert words in words_of(answer)
    assert "What to do:" in words_of(answer)
    assert answer.headers["content-security-policy"]


def test_a_program_that_asks_for_an_unknown_address_gets_a_problem_document(pages: PageFarm) -> None:
    for path, accepted in (("/nope", "*/*"), ("/api/v1/nope", "text/html")):
        answer = pages.http.get(path, headers={"Accept": accepted})
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "name", "typed", "hint"),
    [
        ("/history", "model", "mobilnet_v2", "did you mean  mobilenet_v2 ?"),
        ("/history", "variant", "int8-crore", "did you mean  int8-core ?"),
        ("/history", "since", "soon", "write it like"),
        ("/speedups", "candidate", "int9", "known here"),
        ("/speedups", "at", "soon", "write it like"),
        ("/changes", "device", "virtual-l", "known here: virtual-1"),
        ("/events", "kind", "job_finish", "job_finished"),
        ("/events", "since", "soon", "12h"),
        ("/alarms", "since", "soon", "write it like"),
        ("/matrices", "since", "soon", "write it like"),
        ("/variants", "since", "soon", "write it like"),
        ("/imports", "since", "soon", "write it like"),
    ],
)
def test_a_wrong_filter_stays_in_its_form_to_be_corrected(
    pages: PageFarm, path: str, name: str, typed: str, hint: str
) -> None:
    answer = pages.http.get(path, params={name: typed})
    assert answer.status_code in (404, 422)
    assert re.search(rf'<input name="{name}" value="{typed}"', answer.text)
    (problem,) = re.findall(r'role="alert">(.*?)</div>', answer.text, re.DOTALL)
    assert typed in problem
    assert hint in " ".join(parsed(problem).text)
    assert f'<a href="{path}">Without filters</a>' in problem


def test_an_alarm_says_beside_its_message_for_how_long_it_is_raised(pages: PageFarm) -> None:
    words = words_of(pages.http.get("/"))
    assert re.search(r"cause: file; 1 of 2 devices, since \S+ for \d+ \w+ +farm regressions show 1", words)


def test_a_wrong_choice_leads_back_to_the_page_without_it(pages: PageFarm) -> None:
    page = pages.http.get("/matrices/1?state=nonsense").text
    assert '<a href="/matrices/1">This page without filters</a>' in page


def test_a_command_quotes_what_came_in_the_address(pages: PageFarm) -> None:
    words = words_of(pages.http.get("/matrices", params={"name": "two precisions;id"}))
    assert "farm matrix list --name='two precisions;id'" in words


def test_a_trend_shows_each_session_and_the_change_in_it(pages: PageFarm) -> None:
    (history, *_) = pages.http.get("/api/v1/history", params={"variant": "int8"}).json()
    answer = pages.http.get("/history", params={"variant": "int8"})
    words = words_of(answer)
    assert ratio_text(history["points"][0]["speedup"]) in words
    assert "Change 1" in words
    assert answer.text.count('<rect class="change"') == 2
    changes = words_of(pages.http.get("/changes"))
    assert "mobilenet_v2 int8-core on phone-1" in changes
    assert "aaaaaaaa" in changes


def test_the_points_of_a_history_are_a_file_of_csv(pages: PageFarm) -> None:
    answer = pages.http.get("/history.csv", params={"variant": "int8"})
    assert answer.headers["content-type"].startswith("text/csv")
    views = TypeAdapter(list[SeriesHistory]).validate_python(
        pages.http.get("/api/v1/history", params={"variant": "int8"}).json()
    )
    assert answer.text.splitlines() == list(csv_lines(views))
    assert len(answer.text.splitlines()) > 1
    assert 'href="/history.csv?variant=int8"' in pages.http.get("/history?variant=int8").text
    nothing = pages.http.get("/history.csv", params={"since": "1m"})
    assert nothing.text.splitlines() == list(csv_lines([]))
    assert pages.http.get("/history.csv", params={"model": "vgg"}).status_code == 404


def test_a_matrix_says_why_its_jobs_wait(pages: PageFarm) -> None:
    words = words_of(pages.http.get(f"/matrices/{pages.queued}"))
    assert "10 jobs wait for virtual-1: no job is queued ahead" in words
    assert "is next" not in words, "the same again, in other words"


def test_each_page_of_devices_says_why_their_jobs_wait(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrices, "_DEVICES", 1)
    progress = pages.http.get(f"/api/v1/matrices/{pages.queued}").json()["progress"]
    waiting = [own["device_id"] for own in progress if own["finished"] < own["total"] and not own["current"]]
    assert len(waiting) > 1
    for before, own in zip(["", *waiting], waiting, strict=False):
        words = words_of(pages.http.get(f"/matrices/{pages.queued}", params={"devices": before}))
        assert re.search(rf"jobs? waits? for {own}", words)


def test_the_cells_of_a_matrix_are_sent_in_pages_and_as_a_file(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrices, "_CELLS", 3)
    cells = pages.http.get(f"/api/v1/matrices/{pages.broken}").json()["cell_list"]
    seen, path = [], f"/matrices/{pages.broken}"
    while path:
        answer = pages.http.get(path)
        seen += re.findall(r'href="/cells/(\d+)"', answer.text)
        (path,) = re.findall(rf'href="(/matrices/{pages.broken}\?after=\d+)"', answer.text) or [""]
    assert sorted(map(int, seen)) == sorted(cell["cell_id"] for cell in cells)
    rows = list(csv.DictReader(io.StringIO(pages.http.get(f"/matrices/{pages.broken}/cells.csv").text)))
    assert [int(row["cell_id"]) for row in rows] == [cell["cell_id"] for cell in cells]
    assert {row["state"] for row in rows} == {"valid", "failed"}
    assert all(row["why"] for row in rows if row["state"] == "failed")


def test_the_devices_of_a_matrix_are_sent_in_pages(pages: PageFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "_DEVICES", 1)
    for number in (pages.finished, pages.queued):
        progress = pages.http.get(f"/api/v1/matrices/{number}").json()["progress"]
        seen, path, count = [], f"/matrices/{number}", 0
        while path:
            answer = pages.http.get(path)
            count += 1
            seen += re.findall(r'<div class="line">\s*<a href="/devices/([^"]+)"', answer.text)
            (path,) = re.findall(rf'href="(/matrices/{number}\?devices=[^"]+)"', answer.text) or [""]
        assert seen == [device["device_id"] for device in progress]
        # None is empty.
        assert count == len(seen) > 1


def test_a_pivot_has_the_numbers_of_the_api_beside_each_other(pages: PageFarm) -> None:
    views = pages.http.get("/api/v1/speedups", params={"matrix_id": pages.finished}).json()
    answer = pages.http.get("/speedups", params={"matrix": pages.finished, "pivot": "true"})
    words = words_of(answer)
    assert all(ratio_text(view["speedup"]) in words for view in views)
    assert all(f'href="/cells/{view["cell_id"]}"' in answer.text for view in views)
    assert "virtual-1 virtual-2" in words
    assert f"farm speedups {pages.finished} --pivot" in words


def test_comparisons_are_a_file_of_csv_with_the_numbers_in_full(pages: PageFarm) -> None:
    for query, filters in ((f"matrix_id={pages.finished}", f"matrix={pages.finished}"), ("", "")):
        views = pages.http.get(f"/api/v1/speedups?{query}").json()
        rows = list(csv.DictReader(io.StringIO(pages.http.get(f"/speedups.csv?{filters}").text)))
        assert [float(row["speedup"]) for row in rows] == [view["speedup"] for view in views]
        assert [row["candidate"] for row in rows] == [view["candidate"] for view in views]


def test_the_samples_of_a_run_are_a_file_of_csv(pages: PageFarm) -> None:
    reading = pages.http.get("/api/v1/attempts/3").json()["reading"]
    rows = list(csv.DictReader(io.StringIO(pages.http.get("/attempts/3/samples.csv").text)))
    assert [int(row["time_ns"]) for row in rows] == reading["samples_ns"]
    assert pages.http.get("/attempts/9999/samples.csv").status_code == 404


def test_the_wall_shows_the_farm_without_anything_to_press(pages: PageFarm) -> None:
    answer = pages.http.get("/wall")
    words = words_of(answer)
    assert "0 running, 20 queued" in words
    assert "Changed since yesterday" in words
    assert not {"button", "form", "nav", "input"} & set(parsed(answer.text).open)
    assert 'hx-get="/wall?part=work"' in answer.text


def test_the_overview_counts_the_devices_of_all_pages(tmp_path: Path) -> None:
    with http_farm(tmp_path) as farm:
        count = MAX_LIST_PAGE + 1
        devices = tuple(phone(f"phone-{number}") for number in range(count))
        assert farm.enroll().exchange(devices=devices).status_code == 200
        assert f"Devices {count} " in words_of(farm.http.get("/"))


def test_the_overview_counts_jobs_of_matrices_that_it_does_not_list(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "_ROWS", (0, 5, 5))
    words = words_of(pages.http.get("/"))
    assert "waits" not in words
    assert "0 running, 20 queued" in words


def test_variants_show_their_inputs_and_whether_what_they_multiply_is_counted(pages: PageFarm) -> None:
    words = words_of(pages.http.get("/variants"))
    assert "1x3x224x224:float32" in words
    assert "MACs" in words
    assert "not counted" in words


def test_a_history_is_of_one_harness_where_it_is_asked_for(pages: PageFarm) -> None:
    everything = pages.http.get("/api/v1/history").json()
    own = pages.http.get("/api/v1/history", params={"harness": "speed_benchmark_torch"}).json()
    assert own == [view for view in everything if view["harness"] == "speed_benchmark_torch"]
    assert own
    assert pages.http.get("/api/v1/history", params={"harness": "llama-bench"}).json() == []
    page = words_of(pages.http.get("/history", params={"harness": "speed_benchmark_torch"}))
    assert "farm history --harness=speed_benchmark_torch" in page
    assert "int8-core" in page
    csv = pages.http.get("/history.csv", params={"harness": "llama-bench"})
    assert csv.text.splitlines() == list(csv_lines([]))
