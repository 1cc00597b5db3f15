"""One candidate over all devices: rows, what they are together, table, CSV and the way to each."""

import csv
import io
import re
from typing import Any

import pytest

from farm.core.base.units import ratio_text
from farm.presentation.text import interval_text
from farm.web.charts.forest_blocks import group_blocks
from farm.web.http.templates import TEMPLATES
from farm.web.pages import speedups
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView
from tests.cli.results.speedups.test_groups import view
from tests.support.database.sent_statements import sent_to
from tests.web.conftest import PageFarm, words_of
from tests.web.questions.reading import Page, read_page

_PATH = "/speedups?by=device&candidate=int8"


def groups(pages: PageFarm, **asked: str) -> list[dict[str, Any]]:
    answer = pages.http.get("/api/v1/speedups/groups", params=asked)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def of(page: Page, name: str) -> str:
    """Return what a row is of: its last text, as only the first row has the plot."""
    (found,) = {row[-1] for row in page.tables[0] if row[:1] == [name]}
    return found


def test_each_device_is_a_row_and_all_together_are_the_last_one(pages: PageFarm) -> None:
    rows = groups(pages, by="device", candidate="int8")
    (over_all,) = groups(pages, by="all", candidate="int8")
    html = pages.http.get(_PATH).text
    page = read_page(html)
    for row in rows:
        shown = page.row(f"{row['group']} (virtual)")
        assert shown["speedup"].split()[-1] == ratio_text(row["speedup"])
        assert shown["95 % interval"] == interval_text(row["ci_low"], row["ci_high"])
        assert of(page, f"{row['group']} (virtual)") == f"{row['rounds']} rounds"
        assert f'href="/cells/{row["cell_id"]}"' in html
    last = page.row("all devices (virtual)")
    assert last["speedup"].split()[-1] == ratio_text(over_all["speedup"])
    assert of(page, "all devices (virtual)") == "2 of 2 devices"
    # A point for each device, and one for all of them, which have no interval: they are two.
    assert html.count("<circle") == len(rows) + 1


def test_the_csv_has_the_rows_in_full(pages: PageFarm) -> None:
    (path,) = re.findall(r'href="(/speedups.csv[^"]*)"', pages.http.get(_PATH).text)
    answer = pages.http.get(path.replace("&amp;", "&"))
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    wanted = groups(pages, by="device", candidate="int8")
    assert [(row["group"], float(row["speedup"])) for row in rows] == [
        (row["group"], row["speedup"]) for row in wanted
    ]


def test_a_further_page_leads_to_the_first_devices(pages: PageFarm) -> None:
    answer = pages.http.get("/speedups?by=soc&after=2")
    (path,) = re.findall(r'href="(/speedups\?[^"]*candidate=[^"]*)"', answer.text)
    there = read_page(pages.http.get(path.replace("&amp;", "&")).text)
    assert there.row("virtual-1 (virtual)")


def test_without_a_candidate_the_page_leads_from_each_to_its_devices(pages: PageFarm) -> None:
    answer = pages.http.get("/speedups?by=device")
    assert "Choose a candidate" in words_of(answer)
    assert "farm speedups --by=all" in words_of(answer)
    (path,) = set(re.findall(r'href="(/speedups\?[^"]*candidate=[^"]*)"', answer.text))
    there = read_page(pages.http.get(path.replace("&amp;", "&")).text)
    assert there.row("virtual-1 (virtual)")


def test_groups_and_all_devices_are_of_the_same_computed_points(pages: PageFarm) -> None:
    def reads_of_starts(by: str) -> int:
        with sent_to(pages.engine) as sent:
            answer = pages.http.get("/speedups", params={"by": by, "candidate": "int8", "part": "groups"})
        assert answer.status_code == 200
        return sum("FROM measurements" in sql for sql, _ in sent)

    # One matrix was measured, and its points are not stored yet.
    alone = reads_of_starts("all")
    assert alone > 0
    for by in ("soc", "device"):
        assert reads_of_starts(by) == alone


@pytest.mark.parametrize("by", ["device-model", "soc", "android", "all"])
def test_groups_of_devices_are_the_rows_of_the_same_table(pages: PageFarm, by: str) -> None:
    names = [row["group"] for row in groups(pages, by=by)]
    assert names
    page = read_page(pages.http.get(f"/speedups?by={by}").text)
    assert [of(page, f"{name} (virtual)") for name in names] == ["2 of 2 devices"] * len(names)


def test_the_form_offers_rows_only_with_what_goes_with_them(pages: PageFarm) -> None:
    assert 'of all matrices and devices"><option value="device"' in pages.http.get("/speedups").text
    for query in ("device=virtual-1", "name=two+precisions", "mine=true", "matrix=1"):
        assert 'name="by"' not in pages.http.get(f"/speedups?{query}").text
    html = pages.http.get("/speedups?by=soc").text
    assert re.findall(r'<option value="([^"]*)" selected', html) == ["soc"]
    assert not any(f'name="{name}"' in html for name in ("device", "name", "mine", "pivot"))


@pytest.mark.parametrize("query", ["by=planet", "by=soc&matrix=1", "by=soc&device=virtual-1"])
def test_what_does_not_go_together_is_a_page_that_says_so(pages: PageFarm, query: str) -> None:
    answer = pages.http.get(f"/speedups?{query}")
    assert answer.status_code == 422
    assert "What to do:" in words_of(answer)


def test_rows_that_do_not_fit_are_on_the_next_page(pages: PageFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speedups, "_GROUPS", 1)
    seen, path = [], _PATH
    while path:
        answer = pages.http.get(f"{path}&part=groups")
        seen += re.findall(r'href="/cells/(\d+)"', answer.text)
        (path,) = re.findall(r'href="(/speedups\?[^"]*after=\d+)"', answer.text) or [""]
        path = path.replace("&amp;", "&")
    assert sorted(map(int, seen)) == [row["cell_id"] for row in groups(pages, by="device", candidate="int8")]


def row(group: str, speedup: float, **changed: Any) -> GroupSpeedupView:
    return view(by=GroupBy.DEVICE, group=group, speedup=speedup, **changed)


def test_the_lowest_comes_first_and_cautions_stand_below() -> None:
    rows = [row("b", 2.0, clocks_differ=True), row("a", 0.5, clocks_differ=True)]
    (block,) = group_blocks(rows, [view(by=GroupBy.ALL, group="all devices")], before=0, limit=9)
    assert [each.group for each in block.drawn] == ["a", "b", "all devices"]
    assert len(block.forest.rows) == 3
    assert block.notes == [
        "caution: int8-core torchscript: its clock covers other work than the baseline's, or may"
    ]


def test_the_diamond_of_all_devices_is_as_wide_as_their_interval() -> None:
    over_all = view(by=GroupBy.ALL, group="all devices", speedup=1.0, ci_low=0.5, ci_high=2.0)
    blocks = group_blocks([row("a", 0.5), row("b", 2.0)], [over_all], before=0, limit=9)
    html = TEMPLATES.get_template("speedups/groups.html").render(groups=blocks, is_choice=False, query="")
    places = re.findall(r'<svg x="([0-9.]+)%" y="[0-9.]+" width="([0-9.]+)%"', html)
    ((low, width),) = ((float(x), float(across)) for x, across in places)
    forest = blocks[0].forest
    (drawn,) = [own.interval for own in forest.rows[-1:]]
    assert drawn is not None
    assert (low, width) == (
        pytest.approx(100 * drawn.low / forest.width, abs=0.01),
        pytest.approx(100 * (drawn.high - drawn.low) / forest.width, abs=0.01),
    )
    # 1 is in the middle of a half and twice.
    assert 'd="M0,7L50.0,0L100,7L50.0,14z"' in html
