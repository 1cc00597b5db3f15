"""Pages of speedups: where one ends, and that there is another one."""

import re
from html import unescape

import pytest

from farm.services.matrices import views as matrix_views
from farm.web.http.templates import TEMPLATES
from farm.web.pages import speedups
from tests.support.sample_views import speedup_view
from tests.web.conftest import PageFarm, words_of
from tests.web.questions.reading import read_page


def test_a_list_goes_on_with_its_filters(pages: PageFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speedups, "_ROWS", 1)
    query = f"matrix={pages.finished}&model=mobilenet_v2"
    seen, path = [], f"/speedups?{query}"
    while path:
        # A part that is sent alone has the links of its page.
        answer = pages.http.get(f"{path}&part=blocks")
        seen += re.findall(r'<th scope="row"><a href="/cells/(\d+)"', answer.text)
        (path,) = re.findall(r'href="(/speedups\?[^"]*after=\d+)"', answer.text) or [""]
        path = path.replace("&amp;", "&")
        assert "part=" not in path
        assert not path or path.startswith(f"/speedups?{query}&after=")
    views = pages.http.get("/api/v1/speedups", params={"matrix_id": pages.finished}).json()
    assert sorted(map(int, seen)) == sorted(view["cell_id"] for view in views)


def test_a_page_of_some_comparisons_says_that_there_are_more_and_where(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "There are more" not in words_of(pages.http.get("/speedups"))
    for name, query in (("_ROWS_OF_ALL", ""), ("_ROWS", "?pivot=true")):
        with monkeypatch.context() as patched:
            patched.setattr(speedups, name, 1)
            answer = pages.http.get(f"/speedups{query}")
        assert "There are more comparisons than the 1 of this page" in words_of(answer)
        assert "farm speedups --by soc" in words_of(answer)
        assert 'href="/speedups.csv' in answer.text


def test_a_page_that_is_full_leads_to_a_row_for_each_device(pages: PageFarm) -> None:
    # The place in a list of comparisons is none in one of devices.
    query = "model=mobilenet_v2&candidate=int8&after=1"
    full = TEMPLATES.get_template("speedups/blocks.html").render(
        {"blocks": [], "next": 2, "rows": 1, "cut": None, "here": "/speedups", "query": query},
        matrix=None,
        device="",
        name="",
        mine=False,
    )
    (link,) = re.findall(r'href="(/speedups\?[^"]*by=device[^"]*)"', full)
    assert link == "/speedups?model=mobilenet_v2&amp;candidate=int8&amp;by=device"
    assert read_page(pages.http.get(unescape(link)).text).row("virtual-1 (virtual)")


@pytest.mark.parametrize(
    ("query", "is_led"),
    [("", True), ("model=mobilenet_v2", True), ("name=two+precisions", False), ("matrix=1", False)],
)
def test_a_row_for_each_device_is_offered_where_it_keeps_all_filters(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch, query: str, is_led: bool
) -> None:
    monkeypatch.setattr(speedups, "_ROWS_OF_ALL", 1)
    monkeypatch.setattr(speedups, "_ROWS", 1)
    answer = pages.http.get(f"/speedups?{query}")
    assert "There are more" in words_of(answer)
    links = re.findall(r'href="(/speedups\?[^"]*by=device[^"]*)"', answer.text)
    assert [pages.http.get(unescape(link)).status_code for link in links] == [200] * is_led


@pytest.mark.parametrize(
    ("rows", "query"),
    [
        ("_ROWS_OF_ALL", ""),
        ("_ROWS_OF_ALL", "model=mobilenet_v2"),
        ("_ROWS", "device=virtual-1"),
        ("_ROWS", "pivot=true"),
        ("_ROWS", "matrix={matrix}"),
    ],
)
def test_a_page_that_all_comparisons_fit_on_has_no_next_one(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch, rows: str, query: str
) -> None:
    path = f"/speedups?{query.format(matrix=pages.finished)}"
    count = len(set(re.findall(r'href="/cells/(\d+)"', pages.http.get(path).text)))
    assert count
    # The other number of rows is for other queries.
    monkeypatch.setattr(speedups, "_ROWS" if rows == "_ROWS_OF_ALL" else "_ROWS_OF_ALL", 1)
    for fit, is_more in ((count, False), (count - 1, True)):
        if fit:
            monkeypatch.setattr(speedups, rows, fit)
            assert ("after=" in pages.http.get(path).text) is is_more


def test_a_matrix_that_is_answered_in_parts_has_a_link_to_the_next_one(
    pages: PageFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/speedups?matrix={pages.finished}"
    views = pages.http.get("/api/v1/speedups", params={"matrix_id": pages.finished}).json()
    for most, is_more in ((len(views), False), (1, True)):
        monkeypatch.setattr(matrix_views, "_PAGE_CELLS", most)
        assert ("after=" in pages.http.get(path).text) is is_more


def test_a_page_ends_with_a_device_or_says_which_one_goes_on() -> None:
    views = [
        speedup_view(device_id=device_id, device_label=device_id.upper(), cell_id=cell_id)
        for cell_id, device_id in enumerate("aabbbcc", 1)
    ]
    shown, said = speedups._page_of(views, 6)
    assert ([view.device_id for view in shown], said["next"], said["cut"]) == ([*"aabbb"], 5, None)
    shown, said = speedups._page_of(views, 4)
    assert (len(shown), said["rows"], said["next"], said["cut"]) == (2, 2, 2, None)
    shown, said = speedups._page_of(views[2:], 2)
    assert (len(shown), said["next"], said["cut"]) == (2, 4, "B")
    assert speedups._page_of(views, 7) == (views, {"next": None, "rows": 7, "cut": None})
