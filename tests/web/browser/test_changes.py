"""Open pages follow what happens, in a real browser; a tab that is idle asks nothing."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.support.farm.http_farm import http_farm
from tests.support.farm.service_fixture import phone
from tests.web.browser.conftest import visit
from tests.web.conftest import PageFarm


def test_a_device_that_is_plugged_in_appears_without_a_reload(browser: Browser, tmp_path: Path) -> None:
    with http_farm(tmp_path) as farm:
        context = browser.new_context()
        try:
            tab = visit(context, farm.url)
            tab.open("/devices")
            expect(tab.page.locator("#live")).to_have_attribute("data-state", "on")
            before = len(tab.requests)
            assert farm.enroll().exchange(devices=(phone("phone-1"),)).status_code == 200
            expect(tab.page.get_by_role("heading", name="phone-1")).to_be_visible()
            further = tab.requests[before:]
            # Its own part, as often as something changed, and never the page.
            assert further
            assert all(url == f"{farm.url}/devices?part=grid" for url in further)
            assert tab.complaints == []
        finally:
            context.close()


@pytest.mark.long
def test_a_part_that_is_sent_again_keeps_the_focus_and_what_is_open(
    browser: Browser, pages: PageFarm
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 500})
    try:
        tab = visit(context, pages.url)
        tab.open("/history")
        table = tab.page.locator("#part-trends details").nth(1)
        table.locator("summary").press("Enter")
        place = table.locator("summary").bounding_box()
        tab.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.dataset.old = ''; })")
        tab.page.evaluate("htmx.trigger(document.getElementById('part-trends'), 'changed')")
        expect(tab.page.locator("#part-trends details[data-old]")).to_have_count(0)
        assert table.get_attribute("open") is not None
        expect(table.locator("summary")).to_be_focused()
        assert tab.page.locator("#part-trends details[open]").count() == 1
        assert table.locator("summary").bounding_box() == place
        assert tab.complaints == []
    finally:
        context.close()


@pytest.mark.long
def test_a_wide_table_that_is_sent_again_stays_where_it_was_scrolled_to(
    browser: Browser, pages: PageFarm
) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 800})
    try:
        tab = visit(context, pages.url)
        tab.open(f"/speedups?matrix={pages.finished}")
        scrolls = tab.page.locator("#part-blocks .scroll")
        scrolls.nth(1).evaluate("(table) => { table.scrollLeft = 90; }")
        scrolls.evaluate_all("(tables) => tables.forEach((table) => { table.dataset.old = ''; })")
        tab.page.evaluate("htmx.trigger(document.getElementById('part-blocks'), 'changed')")
        expect(tab.page.locator("#part-blocks .scroll[data-old]")).to_have_count(0)
        assert scrolls.evaluate_all("(tables) => tables.map((table) => table.scrollLeft)") == [0, 90]
        assert tab.complaints == []
    finally:
        context.close()


@pytest.mark.long
def test_the_focus_stays_on_its_row_when_another_one_comes_on_top(browser: Browser, pages: PageFarm) -> None:
    def send_one_more_row(route: Route) -> None:
        answer = route.fetch()
        row = '<tr><td><a href="/matrices/999">newer</a></td></tr>'
        route.fulfill(response=answer, body=answer.text().replace("<tbody>", f"<tbody>{row}", 1))

    context = browser.new_context()
    try:
        tab = visit(context, pages.url)
        tab.open("/matrices")
        link = tab.page.locator(f"#part-rows a[href='/matrices/{pages.broken}']").first
        link.focus()
        tab.page.route("**/matrices?part=rows*", send_one_more_row)
        tab.page.evaluate("htmx.trigger(document.getElementById('part-rows'), 'changed')")
        expect(tab.page.get_by_role("link", name="newer")).to_be_visible()
        expect(link).to_be_focused()
        assert tab.complaints == []
    finally:
        context.close()
