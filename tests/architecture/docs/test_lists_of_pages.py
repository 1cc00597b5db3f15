"""Every page has one place in the menu of the site, every decision one in their list, and its parts."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.architecture.sources import ROOT


def menu_pages(entry: object) -> Iterator[str]:
    """Yield the pages of a part of the menu."""
    match entry:
        case str():
            yield entry
        case list():
            for each in entry:
                yield from menu_pages(each)
        case dict():
            for each in entry.values():
                yield from menu_pages(each)


def test_each_page_has_one_place_in_the_menu() -> None:
    # It has tags of Python, which say how anchors are made.
    text = re.sub(r"!!python\S+", "", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = Counter(menu_pages(yaml.safe_load(text)["nav"]))
    assert [page for page, count in listed.items() if count > 1] == []
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    # Decisions are reached from their list.
    named = {page for page in pages if not re.match(r"decisions/\d", page)}
    assert named - set(listed) == set(), "mkdocs.yml has the menu"


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def test_the_list_of_decisions_has_each_once_in_order() -> None:
    text = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    # A list is numbered anew on the web: one that leaves a number out shows wrong ones after it.
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    listed = re.findall(r"^(\d+)\. \[.+\]\((.+)\)$", text, re.MULTILINE)
    assert listed == [(str(int(path.name[:4])), path.name) for path in DECISIONS]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_date_status_context_decision_and_consequences(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# ADR {int(path.name[:4])}: ")
    assert re.search(r"^Date: \d{4}-\d\d-\d\d.* Status: \w+", text, re.MULTILINE)
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert {"Context", "Decision", "Consequences"} <= set(headings)
