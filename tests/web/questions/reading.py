"""A page as a person reads it: its facts, tables, lists and sections."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Page:
    """The texts of a page, with whitespace as a browser shows it."""

    #: By the name of the fact, as `state` or `jobs`; of several, the first.
    facts: dict[str, str] = field(default_factory=dict)
    #: Of each table its rows, each a list of the texts of its cells; the first is the head.
    tables: list[list[list[str]]] = field(default_factory=list)
    #: Of each element of a list, of each code block and heading.
    items: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    #: The first code block below each heading of a section.
    code_below: dict[str, str] = field(default_factory=dict)
    headings: list[str] = field(default_factory=list)
    #: Of elements of these classes.
    chips: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def row(self, first: str, *, table: int = 0) -> dict[str, str]:
        """Return the row whose first cell has this text, by the heads of its columns."""
        head, *rows = self.tables[table]
        (found,) = (row for row in rows if row[:1] == [first])
        return dict(zip(head, found, strict=False))

    def column(self, name: str, *, table: int = 0) -> list[str]:
        """Return the texts of a column."""
        head, *rows = self.tables[table]
        return [row[head.index(name)] for row in rows]


def read_page(html: str) -> Page:
    """Return the texts of a page."""
    reader = _Reader()
    reader.feed(html)
    return reader.page


class _Reader(HTMLParser):
    _VOID = frozenset({"meta", "link", "br", "input", "img", "hr", "rect", "line", "circle", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._open: list[tuple[str, Sequence[str], list[str]]] = []
        self._fact = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._VOID:
            self._add(" ")
            return
        names = dict(attrs)
        classes = [*(names.get("class") or "").split(), *(["-"] if "aria-hidden" in names else [])]
        if tag == "table":
            self.page.tables.append([])
        if tag == "tr" and self.page.tables:
            self.page.tables[-1].append([])
        self._open.append((tag, classes, []))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._VOID or tag not in [name for name, _, _ in self._open]:
            return
        while True:
            name, classes, parts = self._open.pop()
            text = " ".join("".join(parts).split())
            self._close(name, classes, text)
            # What only a plot or a glyph says has a text elsewhere.
            if name not in ("svg", "script", "style") and "-" not in classes:
                self._add(f" {text} " if name in ("p", "div", "td", "th", "dd", "dt", "li", "h2") else text)
            if name == tag:
                return

    def handle_data(self, data: str) -> None:
        self._add(data)

    def _add(self, text: str) -> None:
        if self._open:
            self._open[-1][2].append(text)

    def _close(self, tag: str, classes: Sequence[str], text: str) -> None:
        page = self.page
        if tag == "dt":
            self._fact = text
        elif tag == "dd":
            page.facts.setdefault(self._fact, text)
        elif tag in ("td", "th") and page.tables and page.tables[-1]:
            page.tables[-1][-1].append(text)
        elif tag == "li":
            page.items.append(text)
        elif tag in ("pre", "code"):
            page.code.append(text)
            if page.headings:
                page.code_below.setdefault(page.headings[-1], text)
        elif tag in ("h1", "h2", "h3"):
            page.headings.append(text)
        if "chip" in classes:
            page.chips.append(text)
        if "line" in classes:
            page.lines.append(text)
