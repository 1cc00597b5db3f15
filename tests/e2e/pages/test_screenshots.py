"""Pages of a real farm while its demo runs, photographed: with BENCHFARM_SCREENSHOTS=1 into docs/images.

For those pictures torch runs the networks. Else a program prints times at once: the test of the README has
the same 50 runs by torch.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from farm.variants.model_zoo import recipes_of
from tests.e2e.pages.test_walkthroughs import MACHINE, name_phones
from tests.support.fakes import unsteady_program
from tests.support.farm.processes import FarmProcess, running_farm_with_agent
from tests.support.models.built_variants import built
from tests.support.session.shared_folder import shared_folder
from tests.web.browser.conftest import find_chromium

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "docs" / "images"
#: What a page of the documentation may load for one picture.
MAX_BYTES = 150_000
_WIDTH, _HEIGHT = 1280, 860
_UP = [sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "2"]
_FINISHED_MS = 1_200_000
_IS_FOR_PAGES = "BENCHFARM_SCREENSHOTS" in os.environ

#: Who comes first builds variants, which takes minutes where others want the cores too.
pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[FarmProcess]:
    """A farm with two virtual devices, and the files of the demo."""
    variants = shared_folder(tmp_path_factory, worker_id, "variants")
    built(recipes_of(["float32", "int8-core"], ["torchscript", "lite"]), variants)
    folder = tmp_path_factory.mktemp("demo") / "farm"
    name_phones(folder / "virtual")
    environment = {"FARM_AGENT_HOST": MACHINE, "FARM_USER": "ann"}
    with running_farm_with_agent(FarmProcess(folder, command=_UP, environment=environment)) as farm:
        words = ["--precision", "float32,int8-core", "--format", "torchscript,lite", "--out", str(variants)]
        farm.cli("variant", "build", "mobilenet_v2", *words)
        if not _IS_FOR_PAGES:
            farm.register_program(unsteady_program())
        yield farm


@contextmanager
def tab() -> Iterator[Page]:
    path = find_chromium()
    if path is None:
        pytest.skip("no chromium on this machine: `apt-get install chromium` runs the tests of pages")
    with sync_playwright() as playwright:
        browser: Browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser.new_page(color_scheme="light", viewport={"width": _WIDTH, "height": _HEIGHT})
        finally:
            browser.close()


def photograph(page: Page, name: str, folder: Path, *, height: int = _HEIGHT) -> None:
    """Write what the window shows, or its upper part; a picture that is too large fails."""
    file = folder / f"{name}.png"
    window = {"x": 0, "y": 0, "width": _WIDTH, "height": height}
    page.screenshot(path=file, animations="disabled", clip=window)
    assert file.stat().st_size < MAX_BYTES, f"{name} is too large for a page of the documentation"


def test_a_matrix_is_seen_from_its_submission_to_its_proof(
    demo: FarmProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = IMAGES if _IS_FOR_PAGES else tmp_path
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("FARM_USER", "ann")
    with tab() as page:
        matrix_id = demo.cli("matrix", "submit", str(ROOT / "examples" / "demo.yaml"))["matrix_id"]
        page.goto(f"{demo.url}/matrices/{matrix_id}")
        # The page follows without a reload.
        expect(page.locator("td.cell.valid").nth(3)).to_be_visible(timeout=_FINISHED_MS)
        photograph(page, "matrix", folder)
        expect(page.locator("dl.facts dd").first).to_have_text("finished", timeout=_FINISHED_MS)
        page.goto(f"{demo.url}/speedups?matrix={matrix_id}")
        expect(page.locator("table.forest").first).to_be_visible()
        # The first device: the other one has the same rows.
        photograph(page, "speedups", folder, height=512)
        page.locator("table.forest a").last.click()
        page.locator("details").first.evaluate("each => each.open = true")
        photograph(page, "cell", folder)


def test_the_pictures_of_the_documentation_are_small_and_shown() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    for file in IMAGES.iterdir():
        assert file.suffix == ".png"
        assert file.stat().st_size < MAX_BYTES
        assert f"(images/{file.name})" in text, f"no page shows {file.name}"
