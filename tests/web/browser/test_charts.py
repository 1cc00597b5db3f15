"""Charts to zoom in take the place of the drawn ones, and show the numbers of the table beside them."""

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.runs.evidence import Evidence
from farm.web.app import create_app_with_pages
from farm.wire.agents.protocol import Assignment
from tests.support.farm.changes import recorded_change
from tests.support.farm.http_farm import served
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, ended, good_evidence, plan_of, torch_output
from tests.web.browser.conftest import visit

SESSIONS = 4


def fill(folder: Path) -> None:
    """Measure the same matrix in several sessions, a day apart."""
    farm, noise = FarmRig(folder), random.Random(7)

    def answer(assignment: Assignment) -> Evidence:
        plan = plan_of(assignment)
        if plan.harness == "device_check":
            return good_evidence(assignment)
        iterations = int(plan.settings["iter"])
        return ended(assignment, torch_output([20_000 * noise.gauss(1, 0.01) for _ in range(iterations)]))

    try:
        host = farm.host()
        host.plug_in("virtual-1")
        for variant in ((), ("int8-core",)):
            farm.variant(*variant)
        for _ in range(SESSIONS):
            host.earn_health()
            farm.submit(name="nightly")
            host.run(answer)
            compute_points(farm)
            farm.clock.advance(timedelta(days=1).total_seconds())
        recorded_change(farm, before_at=farm.clock.now() - timedelta(days=3))
    finally:
        farm.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("history")
    fill(folder)
    with served(create_app_with_pages(FarmConfig(data_dir=folder), SystemClock())) as (url, _):
        yield url


def drawn(page: Page) -> list[str]:
    """Return what the charts show, as images."""
    images: list[str] = page.evaluate(
        "[...document.querySelectorAll('.zoom canvas')].map((one) => one.toDataURL())"
    )
    return images


@pytest.mark.long
def test_a_chart_takes_the_place_of_the_drawing_and_zooms(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        tab = visit(context, url)
        tab.open("/history?variant=int8")
        page = tab.page
        expect(page.locator(".zoom canvas")).to_have_count(2)
        assert page.locator("figure svg").first.is_hidden()
        whole = drawn(page)
        area = page.locator(".u-over").first.bounding_box()
        assert area is not None
        page.mouse.move(area["x"] + area["width"] * 0.4, area["y"] + 20)
        page.mouse.down()
        page.mouse.move(area["x"] + area["width"] * 0.9, area["y"] + 20, steps=4)
        page.mouse.up()
        # Both charts of a series show the same sessions.
        zoomed = drawn(page)
        assert zoomed[0] != whole[0]
        assert zoomed[1] != whole[1]
        page.locator(".u-over").first.dblclick()
        page.mouse.move(5, 5)
        assert drawn(page) == whole
        page.locator(".zoom").first.focus()
        page.keyboard.press("+")
        assert drawn(page)[1] != whole[1]
        page.keyboard.press("Escape")
        assert drawn(page) == whole
        assert Axe().run(page).response["violations"] == []
        assert tab.complaints == []
    finally:
        context.close()


def test_the_value_below_the_pointer_is_that_of_the_table(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        tab = visit(context, url)
        tab.open("/history?variant=int8")
        area = tab.page.locator(".u-over").first.bounding_box()
        assert area is not None
        tab.page.mouse.move(area["x"] + area["width"] - 2, area["y"] + 30)
        newest = tab.page.locator("tbody[id^=sessions] tr").first
        speedup = newest.locator("[data-of=speedup]").text_content()
        expect(tab.page.locator(".zoom .u-series.speedup .u-value")).to_have_text(speedup or "")
    finally:
        context.close()


def test_zooming_outlives_a_part_that_is_sent_again(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        tab = visit(context, url)
        tab.open("/history?variant=int8")
        tab.page.locator(".zoom").first.focus()
        tab.page.keyboard.press("+")
        zoomed = drawn(tab.page)
        # The answer comes before the figures are replaced: those that are there by now do not count.
        tab.page.evaluate("document.querySelectorAll('figure').forEach((one) => { one.dataset.old = ''; })")
        tab.page.evaluate("htmx.trigger(document.getElementById('part-trends'), 'changed')")
        expect(tab.page.locator("figure.plotted:not([data-old])")).to_have_count(2)
        expect(tab.page.locator(".zoom canvas")).to_have_count(2)
        assert drawn(tab.page) == zoomed
        assert tab.complaints == []
    finally:
        context.close()


def test_without_scripts_the_drawing_stays(browser: Browser, url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        tab = visit(context, url)
        tab.open("/history?variant=int8")
        assert tab.page.locator("figure svg").first.is_visible()
        assert tab.page.locator("rect.change").count() == 2
    finally:
        context.close()


def test_a_chart_that_is_not_drawn_again_yet_does_not_widen_the_page(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        tab = visit(context, url)
        tab.page.add_init_script(
            "addEventListener('resize', (event) => event.stopImmediatePropagation(), true)"
        )
        tab.open("/history?variant=int8")
        expect(tab.page.locator(".zoom canvas")).to_have_count(2)
        tab.page.set_viewport_size({"width": 360, "height": 800})
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360
    finally:
        context.close()
