"""The documentation site is built strictly, and neither lacks a file nor asks another host for one."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from tests.architecture.sources import ROOT
from tests.web.browser.conftest import COLOURS, find_chromium, visit

_LOADED = re.compile(r"<(?:script|img|source|iframe|link)\b[^>]*?\b(?:src|href)=\"?([^\s\">]+)")
_STYLE_FILE = re.compile(r"url\(([^)]+)\)|@import\s+[\"']([^\"']+)")
_HREF = re.compile(r"\b(?:href|src)=\"([^\"]*)\"")
_ID = re.compile(r"\bid=\"([^\"]+)\"")
#: For the index of the whole site to be read, on a busy machine.
_PATIENCE_MS = 120_000

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: `pip install 'benchfarm[docs]'` runs the tests of the site")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


def pages(site: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def test_every_page_of_the_documentation_has_its_place(site: Path) -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        name = path.relative_to(ROOT / "docs").with_suffix(".html")
        built = site / (name.with_name("index.html") if name.name == "README.html" else name)
        assert built.is_file(), name


def test_links_of_the_site_lead_to_files_and_anchors_of_it(site: Path) -> None:
    texts = pages(site)
    ids = {path: set(_ID.findall(text)) for path, text in texts.items()}
    broken = []
    for path, text in texts.items():
        # Links of this page are from the root of a server.
        for link in () if path.name == "404.html" else _HREF.findall(text):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            is_there = target.is_file() and (
                not parts.fragment
                or parts.fragment.startswith("__")
                or unquote(parts.fragment) in ids.get(target, set())
            )
            if not is_there:
                broken.append((str(path.relative_to(site)), link))
    assert broken == []


def test_no_page_or_style_loads_from_another_host(site: Path) -> None:
    loaded = {link for text in pages(site).values() for link in _LOADED.findall(text)}
    styles = {path.read_text(encoding="utf-8") for path in site.rglob("*.css")}
    loaded |= {name.strip("\"'") for text in styles for pair in _STYLE_FILE.findall(text) for name in pair}
    assert [link for link in loaded if urlsplit(link).netloc] == []


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_browser_asks_no_other_host_and_finds_by_search(served: str) -> None:
    path = find_chromium()
    if path is None:
        pytest.skip("no chromium on this machine: `apt-get install chromium` runs the tests of pages")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            tab = visit(browser.new_context(viewport={"width": 1280, "height": 800}), served)
            for page in ("/index.html", "/states.html", "/reference/commands.html", "/reliability.html"):
                tab.open(page)
                assert tab.page.locator("h1").first.is_visible()
            tab.page.set_viewport_size({"width": 360, "height": 800})
            tab.open("/reference/errors.html")
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360
            tab.page.set_viewport_size({"width": 1280, "height": 800})
            # A worker reads the index, and says so; from then on each key that is released is a search.
            status = tab.page.locator(".md-search-result__meta")
            expect(status).to_have_text("Type to start searching", timeout=_PATIENCE_MS)
            tab.page.get_by_placeholder("Search").first.press_sequentially("fencing token")
            tab.page.locator(".md-search-result__item").first.wait_for(timeout=_PATIENCE_MS)
            assert tab.complaints == []
        finally:
            browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_the_site(served: str, scheme: Any) -> None:
    path = find_chromium()
    if path is None:
        pytest.skip("no chromium on this machine: `apt-get install chromium` runs the tests of pages")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            page = browser.new_page(color_scheme=scheme, viewport={"width": 1280, "height": 800})
            rules: dict[str, Any] = COLOURS if scheme == "dark" else {"resultTypes": ["violations"]}
            for name in ("index", "engineer", "reading-the-table", "states", "reference/commands"):
                page.goto(f"{served}/{name}.html")
                violations = Axe().run(page, options=rules).response["violations"]
                assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == [], name
        finally:
            browser.close()
