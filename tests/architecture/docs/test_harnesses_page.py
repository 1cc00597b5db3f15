"""docs/harnesses.md says what the code does."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from farm.bundles.build import RECIPES
from farm.bundles.vendor.table import VENDOR_PROGRAMS
from farm.cli.shell.main import app
from farm.core.programs.bundle import MAX_BUNDLE_BYTES, MAX_FILES, RUN_FILES
from farm.core.runs.plan import MAX_PATH_BYTES
from farm.harness.registry import get_harness, harness_names
from farm.wire.documents.matrices.matrix import load_matrix, matrix_spec

PAGE_FOLDER = Path(__file__).resolve().parents[3] / "docs"
PAGE = (PAGE_FOLDER / "harnesses.md").read_text()
COMMANDS = re.findall(r"^    farm (harness .+)$", PAGE, re.MULTILINE)


def test_the_limits_are_those_of_the_code() -> None:
    assert f"at most {MAX_FILES} files and {MAX_BUNDLE_BYTES // 1024**3} GiB" in PAGE
    assert f"at most {MAX_PATH_BYTES} bytes" in " ".join(PAGE.split())


def test_the_names_that_are_taken_are_all_told() -> None:
    told = re.search(r"refused: ((?:`[\w.]+`[,.]? ?)+)", " ".join(PAGE.split()))
    assert told is not None
    assert set(re.findall(r"`([\w.]+)`", told[1])) == RUN_FILES


def test_adapters_of_the_farms_own_are_named() -> None:
    for name in harness_names():
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", harness_names())
def test_a_matrix_can_name_each_adapter(name: str) -> None:
    assert matrix_spec({"name": "m", "harness": name, "devices": "all"}).harness == name


@pytest.mark.parametrize("name", harness_names())
def test_each_adapter_has_a_section_and_a_row_with_its_backends(name: str) -> None:
    assert f"\n### {name}\n" in PAGE
    [row] = re.findall(rf"^\| `{re.escape(name)}` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert row.split(", ") == list(get_harness(name).backends)


@pytest.mark.parametrize("name", harness_names())
def test_each_adapter_has_a_line_that_says_where_its_program_is_to_be_had(name: str) -> None:
    section = PAGE.partition("\n## Programs for phones\n")[2].partition("\n### ")[0]
    [line] = re.findall(rf"^\| `{re.escape(name)}` \| ([^|]+) \|$", section, re.MULTILINE)
    assert re.search(r"\b(build|get) it\b|no phone runs", line)
    for command, program in re.findall(r"`farm harness (\w+) ([\w.]+)", line):
        assert program in {"build": RECIPES, "fetch": VENDOR_PROGRAMS}[command]


def test_what_can_be_built_or_fetched_stands_in_the_line_of_its_harness() -> None:
    for recipe in RECIPES.values():
        assert re.search(
            rf"^\| `{recipe.harness}` \| .*`farm harness build {recipe.name}`", PAGE, re.MULTILINE
        )
    for program in VENDOR_PROGRAMS.values():
        fetch = f"farm harness fetch {program.name}@VERSION"
        assert re.search(rf"^\| `{program.harness}` \| .*`{fetch}`", PAGE, re.MULTILINE)


def test_the_example_of_benchmark_model_fits_its_adapter() -> None:
    example = PAGE_FOLDER.parent / "examples" / "benchmark_model.yaml"
    spec = matrix_spec(load_matrix(example.read_text()))
    harness = get_harness(spec.harness)
    assert set(spec.axes["backend"]) <= set(harness.backends)
    assert {*spec.settings, "num_threads"} <= set(harness.flags)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_on_the_page_is_one(line: str) -> None:
    words = shlex.split(line.partition(" -- ")[0])
    command: Any = typer.main.get_command(app)
    for word in words[:2]:
        command = command.commands[word]
    known = {name for option in command.params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known
