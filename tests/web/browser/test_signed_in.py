"""Signing in and out in a real browser, what each role may press, and what becomes of a session that ends."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.tokens import revoke_access_token
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import phone
from tests.web.browser.conftest import Visit, visit
from tests.web.browser.test_reading import violations
from tests.web.test_sign_in import token


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    with http_farm(tmp_path_factory.mktemp("farm"), require_tokens=True) as farm:
        assert farm.enroll().exchange(devices=(phone("phone-1"),)).status_code == 200
        yield farm


@contextmanager
def signed_in(browser: Browser, farm: HttpFarm, secret: str, **options: object) -> Iterator[Visit]:
    """A tab in which someone signed in."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    try:
        tab = visit(context, farm.url)
        tab.open("/login")
        tab.page.get_by_label("Access token").fill(secret)
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.wait_for_url(farm.url + "/")
        yield tab
    finally:
        context.close()


def test_people_sign_in_and_out(browser: Browser, farm: HttpFarm) -> None:
    secret, _ = token(farm, Role.OPERATOR, name="olga")
    context = browser.new_context()
    try:
        tab = visit(context, farm.url)
        tab.open("/hosts")
        tab.page.get_by_label("Access token").fill("bfu_" + "x" * 43)
        tab.page.get_by_role("button", name="Sign in").click()
        assert "unknown, too old or revoked" in tab.page.get_by_role("alert").inner_text()
        tab.page.get_by_label("Access token").fill(secret)
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.wait_for_url("**/hosts")
        assert "olga, operator" in tab.page.locator(".who").inner_text()
        (cookie,) = context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        tab.page.get_by_role("button", name="Sign out").click()
        tab.page.wait_for_url("**/login")
        tab.open("/devices")
        assert "/login?next=%2Fdevices" in tab.page.url
    finally:
        context.close()


@pytest.mark.long
def test_a_viewer_sees_no_button_and_an_operator_acts_by_the_keyboard(
    browser: Browser, farm: HttpFarm
) -> None:
    with signed_in(browser, farm, token(farm, Role.VIEWER, name="vic")[0]) as tab:
        tab.open("/devices/phone-1")
        expect(tab.page.get_by_role("heading", level=1)).to_contain_text("phone-1")
        assert tab.page.get_by_role("link", name="Cordon").count() == 0
    with signed_in(browser, farm, token(farm, Role.OPERATOR, name="oda")[0]) as tab:
        tab.open("/devices/phone-1")
        tab.page.get_by_role("link", name="Cordon", exact=True).focus()
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_url("**/devices/phone-1/cordon")
        assert "It gets no further work" in tab.page.locator("main").inner_text()
        tab.page.get_by_label("Reason").focus()
        tab.page.keyboard.type("new cable")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_url("**/devices/phone-1")
        expect(tab.page.locator("main")).to_contain_text("new cable")
        expect(tab.page.get_by_role("link", name="Uncordon")).to_be_visible()


@pytest.mark.long
def test_an_open_page_tells_that_its_session_has_ended_and_leads_back(
    browser: Browser, farm: HttpFarm
) -> None:
    secret, token_id = token(farm, Role.VIEWER, name="wall")
    with signed_in(browser, farm, secret) as tab:
        tab.open("/wall")
        expect(tab.page.locator("#live-text")).to_have_text("live")
        expect(tab.page.locator("#stale")).to_be_hidden()
        farm.context.database.write(bind_tx(revoke_access_token, now=farm.context.clock.now()), token_id)
        assert farm.enroll("bench-2").exchange(devices=(phone("phone-2"),)).status_code == 200
        expect(tab.page.locator("#stale")).to_be_visible()
        expect(tab.page.locator("#live-text")).to_contain_text("not live since")
        tab.page.get_by_role("link", name="Load it again").click()
        tab.page.wait_for_url("**/login?**")
        expect(tab.page.get_by_role("status")).to_contain_text("Your session has ended.")
        tab.page.get_by_label("Access token").fill(token(farm, Role.VIEWER, name="wall")[0])
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.wait_for_url("**/wall")


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_sign_in_and_the_question_before_an_action_are_accessible(
    browser: Browser, farm: HttpFarm, scheme: str
) -> None:
    with signed_in(browser, farm, token(farm, Role.OPERATOR, name="ola")[0], color_scheme=scheme) as tab:
        for path in ("/devices/phone-1/cordon", "/nope"):
            tab.open(path)
            assert violations(Axe().run(tab.page).response) == []
        tab.page.context.clear_cookies()
        for path in ("/login", "/login?ended=true"):
            tab.open(path)
            expect(tab.page.get_by_role("heading", level=1)).to_have_text("Sign in")
            assert violations(Axe().run(tab.page).response) == []
