"""The cells of a matrix by their state: what needs a look is found in a matrix of any size."""

import csv
import io
import re
from collections.abc import Sequence
from urllib.parse import urlencode

import pytest

from farm.core.base.ids import AttemptId, CellId, DeviceId
from farm.core.runs.measurement import CellState
from farm.presentation.cell_state import alike_reasons, cell_state
from farm.services.matrices import views
from farm.services.matrices.cell_views import CellLine
from farm.web.http.templates import TEMPLATES
from farm.web.http.verdict_marks import state_mark
from farm.web.pages import matrices
from farm.web.pages.matrices import CellGrid, cell_grid
from farm.wire.documents.matrices.matrices import CellView
from tests.web.conftest import PageFarm, words_of
from tests.web.questions.reading import read_page


def cells(html: str) -> list[int]:
    return [int(cell) for cell in re.findall(r'<td class="cell [^"]*"><a href="/cells/(\d+)"', html)]


def wanted(pages: PageFarm, matrix_id: int, states: Sequence[CellState]) -> list[int]:
    found = pages.http.get(f"/api/v1/matrices/{matrix_id}").json()["cell_list"]
    known = [CellView.model_validate(view) for view in found]
    return sorted(view.cell_id for view in known if cell_state(view) in states)


@pytest.mark.parametrize("state", CellState)
def test_a_filter_shows_the_cells_that_are_in_its_state(pages: PageFarm, state: CellState) -> None:
    counts = []
    for matrix_id in (pages.finished, pages.broken, pages.queued):
        answer = pages.http.get(f"/matrices/{matrix_id}", params={"state": state})
        assert sorted(cells(answer.text)) == wanted(pages, matrix_id, [state])
        counts.append(len(cells(answer.text)))
        if not counts[-1]:
            assert f"No cell is {state}." in words_of(answer)
    assert any(counts) == (state in (CellState.VALID, CellState.FAILED, CellState.NOT_RUN))


def test_all_but_valid_is_one_click_away(pages: PageFarm) -> None:
    html = pages.http.get(f"/matrices/{pages.broken}").text
    (link,) = re.findall(r'<a href="([^"]*)">all but valid</a>', html)
    others = [state for state in CellState if state is not CellState.VALID]
    shown = pages.http.get(link).text
    assert sorted(cells(shown)) == wanted(pages, pages.broken, others)
    assert 'aria-current="true">all but valid</a>' in shown
    # A part that is sent alone has the same cells.
    assert cells(pages.http.get(f"{link}&part=cells").text) == cells(shown)


def test_a_filter_goes_through_a_large_matrix_piece_by_piece(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "_INSPECTED", 1)
    seen, path, steps = [], f"/matrices/{pages.broken}?state=failed", 0
    while path:
        answer = pages.http.get(path)
        seen += cells(answer.text)
        if not cells(answer.text):
            assert "No cell is failed" in words_of(answer)
        (path,) = re.findall(r'<a href="([^"]*)">More cells</a>', answer.text) or [""]
        path, steps = path.replace("&amp;", "&"), steps + 1
    assert sorted(seen) == wanted(pages, pages.broken, [CellState.FAILED])
    assert steps == len(read_page(pages.http.get(f"/matrices/{pages.broken}").text).tables[0][1:]) * 2


@pytest.mark.parametrize(("inspected", "limit"), [(1, 400), (20_000, 1)])
@pytest.mark.parametrize("state", ["failed", "valid", "not valid", "refused"])
def test_the_csv_beside_a_filter_has_its_cells(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch, state: str, inspected: int, limit: int
) -> None:
    path = f"/matrices/{pages.broken}?{urlencode({'state': state})}"
    html = pages.http.get(path).text
    (link,) = re.findall(r'<a href="([^"]*)">As CSV</a>', html)
    monkeypatch.setattr(views, "_INSPECTED", inspected)
    monkeypatch.setattr(matrices, "_CELLS", limit)
    rows = list(csv.DictReader(io.StringIO(pages.http.get(link).text)))
    assert sorted(int(row["cell_id"]) for row in rows) == sorted(cells(html))


def test_that_every_cell_is_valid_is_said_so(pages: PageFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/matrices/{pages.finished}?state=not+valid"
    assert "Every cell is valid." in words_of(pages.http.get(path))
    monkeypatch.setattr(views, "_INSPECTED", 1)
    assert "Every one of the next cells is valid." in words_of(pages.http.get(path))


def test_a_state_that_is_none_is_a_page_that_names_them(pages: PageFarm) -> None:
    answer = pages.http.get(f"/matrices/{pages.broken}?state=sad")
    assert answer.status_code == 422
    assert "valid, refused, failed, unsupported, not run, not valid" in words_of(answer)


@pytest.mark.parametrize(("state", "words"), [("", "not asked for"), ("failed", "not shown")])
def test_a_place_without_a_cell_says_why(state: str, words: str) -> None:
    grid = CellGrid(devices=["phone-1"], rows=[("int8-core", [None])])
    template = TEMPLATES.get_template("matrices/one/cells.html")
    assert words in template.render(grid=grid, state=state, next=None, here="/matrices/1", query="")


def test_states_differ_by_their_glyphs_and_have_their_words() -> None:
    marks = {state: re.sub("<[^>]*>", "", state_mark(state)) for state in CellState}
    assert all(mark.endswith(state) for state, mark in marks.items())
    assert len({mark.removesuffix(state) for state, mark in marks.items()}) == len(CellState)


@pytest.mark.parametrize(("valid", "is_told"), [(2, False), (0, True)])
def test_problems_are_told_of_cells_that_are_not_valid(valid: int, is_told: bool) -> None:
    line = CellLine(
        cell_id=CellId(7),
        index=0,
        device_id=DeviceId("phone-1"),
        device_label=None,
        label="int8-core",
        replica=1,
        jobs=3,
        jobs_by_outcome={"succeeded": valid, "failed": 1},
        measurements_by_quality={"valid": valid},
        value_ns=1e6 if valid else None,
        problems={"failed: it crashed": 1},
        attempt_by_problem={"failed: it crashed": AttemptId(5)},
    )
    template = TEMPLATES.get_template("matrices/one/cells.html")
    shown = template.render(grid=cell_grid([line]), state="", next=None, here="/matrices/1", query="")
    assert ("it crashed" in shown) is is_told
    assert ('href="/attempts/5"' in shown) is is_told


def test_reasons_that_differ_in_their_quantities_only_are_one() -> None:
    reasons = (("the step is 9.1% of the time", 1), ("the step is 6.7% of the time", 4), ("exit code 1", 2))
    assert alike_reasons((*reasons, ("exit code 134", 1))) == [
        ("the step is 9.1% of the time", "5x, with other numbers"),
        ("exit code 1", "2x"),
        ("exit code 134", "1x"),
    ]
