"""Ages on an open page stay right, without a request."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, expect

from farm.web.http.templates import age_element
from tests.web.browser.conftest import visit
from tests.web.conftest import PageFarm

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
AGES = (
    (timedelta(seconds=59), "0 min"),
    (timedelta(minutes=1), "1 min"),
    (timedelta(minutes=59, seconds=59), "59 min"),
    (timedelta(hours=1), "1 h"),
    (timedelta(hours=47, minutes=59), "47 h"),
    (timedelta(days=2), "2 days"),
    (timedelta(days=9, hours=23), "9 days"),
)
#: What the page says of later times; the script looks every 20 s, so that none is so near to the next words.
LATER = (
    (timedelta(minutes=1), "1 min"),
    (timedelta(minutes=59), "59 min"),
    (timedelta(hours=1), "1 h"),
    (timedelta(hours=47, minutes=59), "47 h"),
    (timedelta(days=2), "2 days"),
    (timedelta(days=9, hours=23), "9 days"),
    # The clock of a browser may be behind that of the farm.
    (timedelta(minutes=-5), "0 min"),
)


@pytest.mark.parametrize(("age", "words"), AGES)
def test_the_farm_says_ages_in_one_unit(age: timedelta, words: str) -> None:
    element = age_element(NOON, NOON + age)
    assert element == f'<time class="age" datetime="{NOON.isoformat()}">{words}</time>'
    # A clock that was set back makes nothing younger than it is.
    assert age_element(NOON, NOON - timedelta(minutes=5)).endswith(">0 min</time>")


def test_the_page_says_the_same_later_without_asking(browser: Browser, pages: PageFarm) -> None:
    context = browser.new_context()
    try:
        tab = visit(context, pages.url)
        tab.page.clock.install()
        tab.open("/hosts")
        age = tab.page.locator("time.age").first
        began = datetime.fromisoformat(age.get_attribute("datetime") or "")
        asked = len(tab.requests)
        for elapsed, words in LATER:
            tab.page.clock.set_system_time(began + elapsed)
            tab.page.clock.run_for(20_000)
            expect(age).to_have_text(words)
        assert len(tab.requests) == asked
        assert tab.complaints == []
    finally:
        context.close()
