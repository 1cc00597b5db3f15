"""Pages of `docs/reference`, which are generated: BENCHFARM_DRAW=1 writes them, tests compare them."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[4] / "docs" / "reference"


def check_page(name: str, page: str) -> None:
    """Assert that a page of the folder has this text; where BENCHFARM_DRAW is set, write it before."""
    path = FOLDER / name
    if os.environ.get("BENCHFARM_DRAW"):
        path.write_text(page, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page, f"docs/reference/{name} is stale: `make docs` writes it"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; line breaks and bars of its texts are escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def paragraphs(docstring: str) -> str:
    """Return the text of a docstring, each of its paragraphs on one line; its code stays as it is."""
    parts = re.split(r"\n\s*\n", docstring.strip())
    return "\n\n".join(part if part.startswith("    ") else " ".join(part.split()) for part in parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
