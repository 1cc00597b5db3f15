"""docs/reading-the-table.md explains every verdict and every column of the table."""

from pathlib import Path

import pytest

from farm.core.results.statistics.verdict import verdict_text
from farm.core.runs.measurement import Verdict

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reading-the-table.md").read_text(encoding="utf-8")


def first_cells(section: str) -> list[str]:
    """Return the first cell of each row of the table of a section."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [row.strip("|").split(" | ")[0].strip().strip("`") for row in rows[2:]]


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_explained(verdict: Verdict) -> None:
    assert verdict_text(verdict, margin=0.02) in first_cells("Verdicts")


def test_every_column_of_the_example_is_explained() -> None:
    (head,) = (line for line in PAGE.splitlines() if line.startswith("candidate "))
    columns = first_cells("Columns")
    assert [column for column in columns if column not in head] == []
    assert "".join(columns).replace(" ", "") == head.replace(" ", "")


def test_the_example_is_that_of_the_readme() -> None:
    example = PAGE.split("```text\n")[1].split("```")[0]
    assert example in (ROOT / "README.md").read_text(encoding="utf-8")
