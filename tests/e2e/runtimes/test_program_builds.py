"""`farm harness build` for a farm that runs: what it registers, and what it prints."""

import json
import shutil
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.bundles.build import RECIPES, build_bundle
from farm.bundles.emulator import EMULATOR
from farm.bundles.workshop import BundleRecipe
from farm.cli.files import program_build
from farm.cli.shell.main import main
from tests.bundles.test_compiled import is_asked_for, this_python, tiny_recipe
from tests.support.farm.processes import FarmProcess, running_farm

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed (pip install ziglang)"),
    pytest.mark.skipif(shutil.which(EMULATOR) is None, reason="there is no qemu-user-static"),
]


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    with running_farm(FarmProcess(tmp_path_factory.mktemp("builds") / "farm")) as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, farm: FarmProcess) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("FARM_URL", farm.url)
    return tmp_path / "benchfarm" / "bundles"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> BundleRecipe:
    """A recipe of a second, with the compiler of this Python."""
    recipe = tiny_recipe(harness="llama-bench")
    monkeypatch.setitem(RECIPES, recipe.name, recipe)
    monkeypatch.setattr(program_build, "build_bundle", partial(build_bundle, interpreter=this_python))
    return recipe


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code and both outputs of a command."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main(words)
    printed = capsys.readouterr()
    return int(left.value.code or 0), printed.out, printed.err


@pytest.mark.usefixtures("tiny")
def test_a_built_program_is_registered_with_its_parts_and_built_no_second_time(
    farm: FarmProcess, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, told = said(capsys, "harness", "build", "tiny")
    assert code == 0, told
    assert f"starting it once under {EMULATOR}" in told
    assert "New matrices of llama-bench run" in told
    # It is linked statically, and every phone has a kernel.
    assert "warning" not in told
    [program] = farm.cli("harness", "show", "llama-bench")["programs"]
    assert (program["abi"], program["entry"], program["in_use"]) == ("arm64-v8a", "tiny", True)
    assert [(part["name"], part["source"]) for part in program["built_with"]] == [("zig", "zig of ziglang")]

    code, out, told = said(capsys, "harness", "build", "tiny", "--json")
    assert code == 0
    assert json.loads(out)["program"]["digest"] == program["digest"]
    assert "starting it" not in told
    assert "(registered before)" in told
    assert [path.name for path in cache.glob("tiny-*") if path.is_dir()]

    code, _, told = said(capsys, "harness", "build", "tiny", "--name", "ann/llama-bench")
    assert code == 0, told
    assert "New matrices of ann/llama-bench run" in told


def test_nothing_is_built_where_no_farm_answers(
    tiny: BundleRecipe, cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARM_URL", "http://127.0.0.1:1")
    code, _, told = said(capsys, "harness", "build", tiny.name)
    assert code != 0
    assert "127.0.0.1:1" in told
    assert not cache.exists()


@is_asked_for
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_each_program_is_built_and_registered(farm: FarmProcess, recipe: BundleRecipe) -> None:
    # The user's own cache: a bundle that is there is not built again.
    added = farm.cli("harness", "build", recipe.name, within_s=7200)
    program = added["program"]
    assert (program["name"], program["abi"], program["entry"]) == (recipe.harness, "arm64-v8a", recipe.entry)
    assert program["command"] == list(recipe.command)
    assert {"zig"} < {part["name"] for part in program["built_with"]}
    assert added["notes"] == []
