"""Pages of single numbers: from a cell to each of its attempts, and from an attempt to what it measured."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from farm.core.base.units import duration_text
from farm.presentation.jobs.attempt import (
    cell_fields,
    evidence_of,
    order_text,
    plan_fields,
    plan_of,
    run_fields,
)
from farm.presentation.jobs.condition import condition_rows
from farm.presentation.jobs.measurement import reading_fields
from farm.wire.documents.matrices.jobs import AttemptView
from tests.support.farm.http_farm import http_farm
from tests.support.farm.service_fixture import FarmRig, good_evidence
from tests.web.conftest import PageFarm, words_of

#: By matrix and cell.
Jobs = dict[int, dict[int, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def jobs_of(pages: PageFarm) -> Jobs:
    """The jobs of all cells, as the API has them."""
    jobs: Jobs = {}
    for matrix_id in (pages.finished, pages.broken, pages.queued):
        for job in pages.http.get("/api/v1/jobs", params={"matrix_id": matrix_id}).json():
            detail = pages.http.get(f"/api/v1/jobs/{job['job_id']}").json()
            jobs.setdefault(matrix_id, {}).setdefault(detail["cell_id"], []).append(detail)
    return jobs


def linked_attempts(html: str) -> list[int]:
    """Return the attempts of the table of runs, in its order."""
    return [int(number) for number in re.findall(r'<a href="/attempts/(\d+)">attempt', html)]


def test_every_cell_leads_to_each_attempt_of_its_own(pages: PageFarm, jobs_of: Jobs) -> None:
    for matrix_id in (pages.finished, pages.broken):
        for cell_id, jobs in jobs_of[matrix_id].items():
            html = pages.http.get(f"/cells/{cell_id}").text
            own = [attempt for job in jobs for attempt in job["attempts"]]
            assert own
            assert linked_attempts(html) == own
            page = pages.http.get(f"/attempts/{own[-1]}")
            assert f'href="/cells/{cell_id}"' in page.text
            assert f'href="/matrices/{matrix_id}"' in page.text


def plain(text: str) -> str:
    """Return a text whose commands may be marked by backticks or by an element, without blanks."""
    return "".join(text.replace("`", "").split())


def test_a_failed_cell_says_why_each_of_its_runs_failed(pages: PageFarm, jobs_of: Jobs) -> None:
    failed = [
        (cell_id, job)
        for cell_id, jobs in jobs_of[pages.broken].items()
        for job in jobs
        if job["outcome"] == "failed"
    ]
    assert failed
    for cell_id, job in failed:
        words = plain(words_of(pages.http.get(f"/cells/{cell_id}")))
        assert plain(f"{job['message']} [{job['code']}]".split(" ID`")[-1]) in words
        assert "attemptshowID" not in words
        for tried in job["attempt_list"]:
            named = tried["message"].replace("show ID", f"show {tried['attempt_id']}")
            assert plain(f"{named} [{tried['code']}]") in words


def test_a_measured_cell_shows_the_median_of_each_run(pages: PageFarm, jobs_of: Jobs) -> None:
    (cell_id, jobs), *_ = jobs_of[pages.finished].items()
    words = words_of(pages.http.get(f"/cells/{cell_id}"))
    for job in jobs:
        assert f"{duration_text(job['run']['value_ns'])} median of" in words


def test_a_waiting_cell_says_why_it_waits(pages: PageFarm, jobs_of: Jobs) -> None:
    (cell_id, jobs), *_ = jobs_of[pages.queued].items()
    words = words_of(pages.http.get(f"/cells/{cell_id}"))
    assert f"job {jobs[0]['job_id']} on virtual-1 waits" in words
    assert f"farm job why {jobs[0]['job_id']}" in words


def test_each_page_of_a_cell_says_why_its_first_open_job_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.web.pages.numbers._JOBS", 2)
    rig = FarmRig(tmp_path)
    try:
        host = rig.healthy_host("virtual-1")
        for variant in ("float32", "int8-core"):
            rig.variant(variant)
        rig.submit(name="half done")
        query = "SELECT job_id, state FROM jobs WHERE cell_id = 1 ORDER BY job_id"
        while [job["state"] for job in rig.rows(query)[:2]] != ["finished"] * 2:
            for assignment in host.exchange().assignments:
                host.report(assignment.attempt_id, good_evidence(assignment))
                host.clean(assignment)
        jobs = rig.rows(query)
    finally:
        rig.close()
    first_open = next(job["job_id"] for job in jobs if job["state"] != "finished")
    assert first_open not in [job["job_id"] for job in jobs[:2]]
    with http_farm(tmp_path) as farm:
        for path in ("/cells/1", f"/cells/1?after={jobs[1]['job_id']}", f"/cells/1?after={first_open}"):
            assert f"farm job why {first_open}" in words_of(farm.http.get(path))


def test_the_runs_of_a_cell_are_sent_in_pages(
    pages: PageFarm, jobs_of: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.web.pages.numbers._JOBS", 2)
    (cell_id, jobs), *_ = jobs_of[pages.finished].items()
    seen: list[int] = []
    path = f"/cells/{cell_id}"
    while path:
        html = pages.http.get(path).text
        seen += linked_attempts(html)
        (path,) = re.findall(rf'href="(/cells/{cell_id}\?after=\d+)"', html) or [""]
    assert seen == [attempt for job in jobs for attempt in job["attempts"]]


def test_the_rounds_of_a_comparison_are_a_file_of_csv(pages: PageFarm) -> None:
    (view, *_) = pages.http.get("/api/v1/speedups", params={"matrix_id": pages.finished}).json()
    cell_id = view["cell_id"]
    rounds = pages.http.get(f"/api/v1/cells/{cell_id}/explanation").json()["rounds"]
    rows = list(csv.DictReader(io.StringIO(pages.http.get(f"/cells/{cell_id}/rounds.csv").text)))
    assert [float(row["ratio"]) for row in rows] == [pair["ratio"] for pair in rounds]
    assert f'href="/cells/{cell_id}/rounds.csv"' in pages.http.get(f"/cells/{cell_id}").text


def test_an_attempt_says_all_that_the_command_says_of_it(pages: PageFarm, jobs_of: Jobs) -> None:
    attempts = [
        attempt for jobs in jobs_of[pages.finished].values() for job in jobs for attempt in job["attempts"]
    ]
    for attempt_id in attempts[:2] + attempts[-2:]:
        view = AttemptView.model_validate(pages.http.get(f"/api/v1/attempts/{attempt_id}").json())
        plan, evidence = plan_of(view), evidence_of(view)
        assert view.cell is not None
        assert view.reading is not None
        assert view.order is not None
        assert plan is not None
        assert evidence is not None
        answer = pages.http.get(f"/attempts/{attempt_id}")
        words = words_of(answer)
        if earlier := view.order.predecessor:
            assert f'href="/attempts/{earlier.attempt_id}"' in answer.text
        fields = [
            *cell_fields(view.cell),
            *plan_fields(plan),
            *reading_fields(view.reading),
            *run_fields(evidence),
            ("order", order_text(view.order)),
        ]
        for heading, text in fields:
            assert text is None or text in words, heading
        assert f"farm attempt show {attempt_id}" in words
        for name, before, _ in condition_rows(evidence.before, evidence.after):
            assert f"{name} {before or 'not reported'}" in words


def test_the_samples_of_a_device_are_a_table_and_a_file_with_their_ceilings_in_words(
    pages: PageFarm, jobs_of: Jobs
) -> None:
    attempt_id = next(
        job["attempts"][0]
        for jobs in jobs_of[pages.finished].values()
        for job in jobs
        if job["device_id"] == "virtual-1"
    )
    answer = pages.http.get(f"/attempts/{attempt_id}")
    assert "not limited: 2.37 GHz in all samples" in words_of(answer)
    rows = list(csv.DictReader(io.StringIO(pages.http.get(f"/attempts/{attempt_id}/trace.csv").text)))
    assert [row["policy4_limit_hz"] for row in rows] == ["2367000000"] * 3
    assert [float(row["time_s"]) for row in rows] == [0.01, 0.02, 0.03]
    assert f'href="/attempts/{attempt_id}/trace.csv"' in answer.text
    assert "policy4_limit_hz" in words_of(answer)


def test_an_event_names_each_state_once(pages: PageFarm) -> None:
    text = pages.http.get("/attempts/3").text
    (events,) = re.findall(r"<h2>Events</h2>(.*?)</ul>", text, re.DOTALL)
    assert "attempt claimed <" in events
    assert "attempt finished: claimed → finished <" in events
