"""A headless Chromium of the system; without one, these tests are skipped."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

#: Pages change within a second; a busy machine may take longer.
_PATIENCE_MS = 120_000
#: Axe's rules about colours; what all others look at is alike in light and dark.
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"], "resultTypes": ["violations"]}


def find_chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


# Not for the whole session: while it is there, no other test of the process can run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.skip("no chromium on this machine: `apt-get install chromium` runs the tests of pages")
    with sync_playwright() as playwright:
        # Without its sandbox, which a container cannot have: it opens pages of this farm only.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        expect.set_options(timeout=_PATIENCE_MS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A tab, and what went wrong in it."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(self.url + path, wait_until="load")

    def note_request(self, request: Request) -> None:
        self.requests.append(request.url)
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.complaints.append(f"asked another host: {request.url}")


def visit(context: BrowserContext, url: str) -> Visit:
    """Return a new tab that records errors, refused scripts, and requests to other hosts."""
    tab = Visit(context.new_page(), url)
    tab.page.set_default_timeout(_PATIENCE_MS)
    tab.page.on(
        "console", lambda message: tab.complaints.append(message.text) if message.type == "error" else None
    )
    tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.page.on("request", tab.note_request)
    return tab
