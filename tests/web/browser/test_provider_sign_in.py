"""Signing in by an identity provider on another site, in a real browser: which cookies it sends."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from tests.security.sign_in.provider import CLIENT, ROLES, running_provider
from tests.support.farm.http_farm import http_farm
from tests.web.browser.conftest import visit


@pytest.mark.long
def test_people_sign_in_by_a_provider_on_another_site(browser: Browser, tmp_path: Path) -> None:
    with running_provider() as provider:
        provider.client_secret, provider.asks_people = None, True
        # To a browser, a name and an address are two sites.
        provider.url = provider.url.replace("127.0.0.1", "localhost")
        with http_farm(
            tmp_path,
            require_tokens=True,
            oidc_issuer=provider.url,
            oidc_client_id=CLIENT,
            oidc_roles=ROLES,
        ) as farm:
            context = browser.new_context()
            try:
                tab = visit(context, farm.url)
                tab.open("/hosts")
                tab.page.get_by_role("link", name="Sign in with localhost").click()
                # The browser now is at the other site, from which the session's own cookie would not be sent.
                tab.page.get_by_role("link", name="Agree").click()
                tab.page.wait_for_url("**/hosts")
                assert "ann, submitter" in tab.page.locator(".who").inner_text()
                (cookie,) = context.cookies()
                assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
                elsewhere = {urlsplit(url).netloc for url in tab.requests} - {urlsplit(farm.url).netloc}
                assert elsewhere == {urlsplit(provider.url).netloc}
            finally:
                context.close()
