"""`docs/python.md` and the notebooks, typed into a farm with two virtual phones."""

import doctest
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.farm.processes import CHECKOUT, FarmProcess, eventually, running_farm_with_agent

# Some 60 runs on virtual phones, and a kernel for each notebook.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "2")
NOTEBOOKS = ("first_comparison", "what_it_rests_on", "trends")


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    """A farm whose virtual phones bear the names of the page."""
    folder = tmp_path_factory.mktemp("lab") / "farm"
    (folder / "virtual").mkdir(parents=True)
    (folder / "virtual" / "suffix").write_text("desk")
    process = FarmProcess(folder, command=_UP, environment={"FARM_AGENT_HOST": "desk"})
    with running_farm_with_agent(process):
        with process.client() as client:
            eventually(
                lambda: [device.health for device in client.devices()] == ["good"] * 2, "they are checked"
            )
        yield process


@pytest.fixture(autouse=True)
def reader(farm: FarmProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sit down in the checkout, before that farm."""
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setenv("FARM_URL", farm.url)
    monkeypatch.setenv("FARM_USER", "ann")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))


def test_the_page_of_the_python_client_is_as_it_says() -> None:
    for package in ("arro3.core", "pandas", "polars"):
        pytest.importorskip(package)
    page = (CHECKOUT / "docs" / "python.md").read_text()
    test = doctest.DocTestParser().get_doctest(page, {}, "docs/python.md", "docs/python.md", 0)
    assert len(test.examples) > 20
    printed: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=printed.append, clear_globs=False)
    test.globs["farm"].close()
    assert not printed, "".join(printed)


def test_notebooks_run_to_their_ends() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    for package in ("ipykernel", "arro3.core", "pandas", "polars"):
        pytest.importorskip(package)
    folder = CHECKOUT / "examples" / "notebooks"
    assert {path.stem for path in folder.glob("*.ipynb")} == set(NOTEBOOKS)
    for name in NOTEBOOKS:
        notebook = nbformat.read(Path(folder / f"{name}.ipynb"), as_version=4)
        assert not any(cell.get("outputs") for cell in notebook.cells), "committed without outputs"
        nbclient.NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(CHECKOUT)}}
        ).execute()
        shown = str([cell.get("outputs") for cell in notebook.cells])
        if name == "first_comparison":
            assert "<svg" in shown, "speedups are drawn"
