"""Open pages follow what happens, in a real browser; a tab that is idle asks nothing."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.support.farm.http_farm import http_farm
from tests.support.farm.service_fixture import phone
from tests.web.browser.conftest import visit


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
