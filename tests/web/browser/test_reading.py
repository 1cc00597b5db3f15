"""Pages in a real browser: readable by everyone, on every width, without errors and without other hosts."""

from itertools import pairwise
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from farm.core.base.units import ratio_text
from tests.web.browser.conftest import COLOURS, visit
from tests.web.conftest import PageFarm
from tests.web.test_pages import PATHS

#: One of each kind, for the quick tier.
_QUICK = ("/", "/speedups")


def violations(found: dict[str, Any]) -> list[str]:
    return [
        f"{violation['id']}: {violation['help']}: {node['html']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def check(browser: Browser, pages: PageFarm, path: str, *, in_dark: bool) -> None:
    context = browser.new_context(color_scheme="light", viewport={"width": 1280, "height": 800})
    try:
        tab = visit(context, pages.url)
        tab.open(path)
        tab.page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert violations(Axe().run(tab.page).response) == []
        if in_dark:
            tab.page.emulate_media(color_scheme="dark")
            assert tab.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
            assert violations(Axe().run(tab.page, options=COLOURS).response) == []
        for width in (360, 1920):
            tab.page.set_viewport_size({"width": width, "height": 800})
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        is_missing = "/99" in path
        assert [text for text in tab.complaints if not (is_missing and "404" in text)] == []
    finally:
        context.close()


@pytest.mark.parametrize("path", _QUICK)
def test_a_page_is_accessible_at_any_width(browser: Browser, pages: PageFarm, path: str) -> None:
    check(browser, pages, path, in_dark=False)


@pytest.mark.long
@pytest.mark.parametrize("path", [*PATHS, "/matrices/99"])
def test_every_page_is_accessible_in_light_and_dark(browser: Browser, pages: PageFarm, path: str) -> None:
    check(browser, pages, path, in_dark=True)


def test_the_numbers_on_the_page_are_those_of_the_api(browser: Browser, pages: PageFarm) -> None:
    views = pages.http.get("/api/v1/speedups", params={"matrix_id": pages.finished}).json()
    context = browser.new_context()
    try:
        tab = visit(context, pages.url)
        tab.open(f"/speedups?matrix={pages.finished}")
        rows = tab.page.locator("table.forest tbody tr:not(.axis)")
        shown = [rows.nth(place).locator("td").first.inner_text() for place in range(rows.count())]
        assert [text.split()[-1] for text in shown] == [ratio_text(view["speedup"]) for view in views]
        circles = tab.page.locator("table.forest circle")
        assert circles.count() == len(views)
    finally:
        context.close()


def test_an_error_shows_what_to_do(browser: Browser, pages: PageFarm) -> None:
    context = browser.new_context()
    try:
        tab = visit(context, pages.url)
        for path in ("/nope", "/matrices?since=soon", "/speedups?model=vgg"):
            tab.open(path)
            assert "What to do:" in tab.page.locator("main").inner_text()
    finally:
        context.close()


def test_without_scripts_links_and_filters_work(browser: Browser, pages: PageFarm) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        tab = visit(context, pages.url)
        tab.open("/matrices")
        tab.page.get_by_label("Name").fill("precisions")
        tab.page.get_by_role("button", name="Show").click()
        assert "name=precisions" in tab.page.url
        tab.page.get_by_role("link", name="two precisions").click()
        assert tab.page.get_by_role("heading", level=1).inner_text().startswith("two precisions")
        tab.page.get_by_role("link", name="Speedups of this matrix").click()
        assert tab.page.get_by_role("heading", level=1).inner_text() == "Speedups of matrix 1"
    finally:
        context.close()


def test_the_keyboard_reaches_content_and_pages(browser: Browser, pages: PageFarm) -> None:
    context = browser.new_context()
    try:
        tab = visit(context, pages.url)
        tab.open("/")
        tab.page.keyboard.press("Tab")
        assert tab.page.evaluate("document.activeElement.textContent") == "Skip to the content"
        tab.page.keyboard.press("Enter")
        assert tab.page.evaluate("document.activeElement.id") == "main"
        tab.open("/")
        for _ in range(4):
            tab.page.keyboard.press("Tab")
        assert tab.page.evaluate("document.activeElement.textContent") == "Matrices"
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_url("**/matrices")
        assert tab.complaints == []
    finally:
        context.close()


@pytest.mark.parametrize("path", ["/speedups?by=device&candidate=int8", "/speedups?by=soc", "/speedups"])
def test_a_forest_plot_is_narrower_before_its_table_is_scrolled(
    browser: Browser, pages: PageFarm, path: str
) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    try:
        tab = visit(context, pages.url)
        tab.open(path)
        regions = tab.page.locator(".scroll")
        assert regions.count() > 0
        for region in regions.all():
            assert region.evaluate("(own) => own.scrollWidth - own.clientWidth") == 0
        for plot in tab.page.locator("td.plot > svg").all():
            area = plot.bounding_box()
            assert area is not None
            assert area["width"] >= 200
            labels = [box for tick in plot.locator("text.tick").all() if (box := tick.bounding_box())]
            starts = [box["x"] for box in labels]
            ends = [box["x"] + box["width"] for box in labels]
            assert all(end < start for end, start in zip(ends, starts[1:], strict=False))
            for circle in plot.locator("circle").all():
                box = circle.bounding_box()
                assert box is not None
                assert area["x"] <= box["x"] + box["width"] / 2 <= area["x"] + area["width"]
                assert box["width"] == pytest.approx(box["height"])
    finally:
        context.close()


@pytest.mark.long
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("path", ["/attempts/3", "/cells/2"])
def test_the_axes_of_a_run_are_readable_at_any_width(
    browser: Browser, pages: PageFarm, path: str, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    try:
        tab = visit(context, pages.url)
        tab.open(path)
        plots = tab.page.locator(".strip-plot")
        assert plots.count() > 0
        for plot in plots.all():
            labels = [box for tick in plot.locator("text.tick").all() if (box := tick.bounding_box())]
            assert len(labels) >= 3
            for box in labels:
                # Of letters of 11 pixels, whatever the width.
                assert box["height"] >= 11
                assert 0 <= box["x"] <= box["x"] + box["width"] <= width
            heights = sorted(box["y"] for box in labels[:-2])
            assert all(after - before >= 10 for before, after in pairwise(heights))
            area = plot.locator(".strip-area").bounding_box()
            assert area is not None
            assert area["width"] > 0.6 * min(width, 700)
            assert plot.locator("path.dots, circle").count() > 0
    finally:
        context.close()


@pytest.mark.parametrize("kind", ["busy", "free", "waits", "down"])
def test_what_stands_in_a_row_is_equally_high_in_any_state(
    browser: Browser, pages: PageFarm, kind: str
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        tab = visit(context, pages.url)
        for path, item in (("/", "chip"), ("/devices", "card")):
            tab.open(path)
            shown = tab.page.locator(f".{item}")
            # One more, as there may be only one.
            shown.first.evaluate(
                "(one, name) => { one.className = name; one.after(one.cloneNode(true)); }", f"{item} {kind}"
            )
            shown.first.evaluate("(one, name) => { one.className = name; }", item)
            assert len({box["height"] for each in shown.all()[:2] if (box := each.bounding_box())}) == 1
    finally:
        context.close()


def test_filters_leave_room_for_numbers_on_a_narrow_screen(browser: Browser, pages: PageFarm) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 800})
    try:
        tab = visit(context, pages.url)
        tab.open("/speedups")
        form = tab.page.locator("form.filters").bounding_box()
        assert form is not None
        assert form["height"] < 500
        for field in tab.page.locator("form.filters label:not(.check) > *").all():
            box = field.bounding_box()
            assert box is not None
            assert box["width"] >= 140
            assert box["x"] + box["width"] <= 344
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360
    finally:
        context.close()


@pytest.mark.long
def test_why_a_run_failed_and_its_time_are_on_a_narrow_screen(browser: Browser, pages: PageFarm) -> None:
    cells = pages.http.get(f"/api/v1/matrices/{pages.broken}").json()["cell_list"]
    failed = next(cell["cell_id"] for cell in cells if cell["problems"])
    context = browser.new_context(viewport={"width": 360, "height": 800})
    try:
        tab = visit(context, pages.url)
        tab.open(f"/cells/{failed}")
        for part in (".runs .result .quiet", ".runs thead .number"):
            box = tab.page.locator(part).first.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= 360
    finally:
        context.close()
