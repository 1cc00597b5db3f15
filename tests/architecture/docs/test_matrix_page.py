"""docs/matrix.md explains every key of a matrix, with its default, and its examples are right."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from farm.core.errors import MatrixInvalid
from farm.wire.documents.matrices.matrix import (
    CONTROLS_MODEL,
    GATES_MODEL,
    MATRIX_MODEL,
    ROUNDS_MODEL,
    SELECTOR_MODEL,
    matrix_spec,
)

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "matrix.md").read_text()
HEADINGS = ["key", "type", "default", "bounds", "meaning", "example"]

SMALLEST = {
    "name": "small",
    "harness": "speed_benchmark_torch",
    "devices": "all",
    "baseline": {"precision": "float32"},
}


def rows(section: str) -> list[list[str]]:
    """The rows of the table under a heading, without its first two."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert table[0][0].strip() == "key"
    return table[2:]


SECTIONS: dict[str, type[BaseModel]] = {
    "The matrix": MATRIX_MODEL,
    "Rounds until cells are decided": ROUNDS_MODEL,
    "Selectors": SELECTOR_MODEL,
    "Gates": GATES_MODEL,
    "Controls": CONTROLS_MODEL,
}
ROWS = [(section, row) for section in SECTIONS for row in rows(section)]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_of_a_matrix_is_explained_in_its_order(section: str) -> None:
    assert [row[0].strip("`") for row in rows(section)] == list(SECTIONS[section].model_fields)


@pytest.mark.parametrize(
    ("section", "row"), ROWS, ids=lambda value: value[0] if isinstance(value, list) else ""
)
def test_each_key_has_all_columns_and_an_example_that_is_taken(section: str, row: list[str]) -> None:
    assert len(row) == len(HEADINGS)
    example = yaml.safe_load(row[-1].strip("`"))
    assert list(example) == [row[0].strip("`")]
    matrix_spec({**SMALLEST, **_placed(section, example)})


def _placed(section: str, example: dict[str, Any]) -> dict[str, Any]:
    match section:
        case "Selectors":
            return {"devices": example}
        case "Gates":
            return {"gates": example}
        case "Rounds until cells are decided":
            return {"rounds": example}
        case "Controls":
            return {"controls": example}
        case _:
            return example


@pytest.mark.parametrize(
    ("section", "row"), ROWS, ids=lambda value: value[0] if isinstance(value, list) else ""
)
def test_the_default_of_each_number_is_the_one_in_force(section: str, row: list[str]) -> None:
    default = SECTIONS[section].model_fields[row[0].strip("`")].default
    written = row[2].strip("`")
    if re.fullmatch(r"[\d.]+|true|false", written):
        assert default == json.loads(written)
    else:
        assert not isinstance(default, bool | float)


def test_the_page_that_the_error_names_is_there_and_linked() -> None:
    page = MatrixInvalid.default_hint.split()[0]
    assert (ROOT / page).is_file()
    assert "docs/matrix.md" in (ROOT / "README.md").read_text()
    assert "(matrix.md)" in (ROOT / "docs" / "concepts.md").read_text()
