"""Every plot has its table, its file of CSV and the command beside it: on all pages, found by their links."""

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.web.conftest import PageFarm

#: Pages of one kind that are looked at: `/attempts/#` is one kind.
_OF_A_KIND = 3


@dataclass
class Section:
    """A section of a page, or the page itself."""

    plots: list[str] = field(default_factory=list)
    has_table: bool = False
    files: list[str] = field(default_factory=list)


class _Sections(HTMLParser):
    """Collects plots with what is in the same section as they are."""

    _VOID = frozenset({"meta", "link", "br", "input", "img", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.page = Section()
        self.sections: list[Section] = []
        self.links: list[str] = []
        self._open: list[Section | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name: value or "" for name, value in attrs}
        if tag == "section":
            self.sections.append(Section())
        if tag not in self._VOID:
            self._open.append(self.sections[-1] if tag == "section" else None)
        own = next((section for section in reversed(self._open) if section), self.page)
        if tag == "svg" and names.get("role") == "img" and names.get("class") != "progress":
            own.plots.append(names["aria-label"])
        if tag == "table" or (tag == "pre" and names.get("class") == "output"):
            own.has_table = True
        if tag == "a" and (path := names.get("href", "")).startswith("/"):
            self.links.append(path)
            if path.split("?")[0].endswith(".csv"):
                own.files.append(path)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._VOID and self._open:
            self._open.pop()


def kind_of(path: str) -> str:
    """Return the kind of a page: its path without numbers and names."""
    kind = re.sub(r"\d+", "#", path.split("?")[0])
    return re.sub(r"/devices/[^/]+", "/devices/#", kind)


def test_every_plot_of_every_page_has_its_table_its_csv_and_the_command(pages: PageFarm) -> None:
    seen, waiting, plotted = Counter[str](), ["/"], Counter[str]()
    visited = {"/"}
    while waiting:
        path = waiting.pop(0)
        kind = kind_of(path)
        if seen[kind] >= _OF_A_KIND or kind.endswith(".csv") or path.startswith(("/static", "/reports")):
            continue
        seen[kind] += 1
        html = pages.http.get(path).text
        reader = _Sections()
        reader.feed(html)
        waiting += [link for link in dict.fromkeys(reader.links) if link not in visited]
        visited.update(reader.links)
        # Nothing on the wall can be pressed.
        if path == "/wall":
            continue
        assert not reader.page.plots, f"{path}: a plot outside of a section"
        for section in reader.sections:
            if not section.plots:
                continue
            plotted[kind] += len(section.plots)
            assert section.has_table, f"{path}: no table beside {section.plots[0]}"
            files = section.files or reader.page.files
            assert files, f"{path}: no CSV of {section.plots[0]}"
            for file in files:
                answer = pages.http.get(file)
                assert answer.headers["content-type"].startswith("text/csv"), file
                assert len(answer.text.splitlines()) > 1, f"{file} is empty"
            assert 'class="command-label"' in html, f"{path}: no command"
    assert plotted.keys() == {"/", "/speedups", "/history", "/cells/#", "/attempts/#", "/devices/#"}
