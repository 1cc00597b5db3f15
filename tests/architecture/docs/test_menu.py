"""Every page of the documentation has one place in the menu of the site."""

import re
from collections import Counter
from collections.abc import Iterator

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
