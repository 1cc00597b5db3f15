"""Hooks of mkdocs: files of the repository that pages link to become pages of the site, too."""

import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
_DIAGRAM = re.compile(r"```mermaid\nstateDiagram-v2\n(.*?)\n```", re.DOTALL)
_ARROW = re.compile(r"    (\S+) --> ([^:\s]+)(?:: (.+))?")
_LANGUAGES = {".py": "python", ".sh": "sh", ".yaml": "yaml", ".yml": "yaml"}


def on_files(files: Files, *, config: Any) -> Files:
    """Add the files outside of `docs` that pages link to, and those that these link to."""
    found = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(found)
    for page in found:
        if not page.endswith(".md"):
            continue
        for link, _ in _LINK.findall((ROOT / page).read_text(encoding="utf-8")):
            path = _resolve(page, link)
            if path in seen or not (ROOT / path).is_file():
                continue
            seen.add(path)
            found.append(path)
            if not path.startswith("docs/"):
                files.append(File.generated(config, site_path(path), content=_content(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Lead links to the pages of the site, and write diagrams of states as tables."""
    source = page.file.src_uri
    if source.startswith("source/"):
        return markdown
    path = source.removeprefix("project/") if source.startswith("project/") else f"docs/{source}"

    def moved(match: re.Match[str]) -> str:
        target = site_path(_resolve(path, match[1]))
        return posixpath.relpath(target, posixpath.dirname(source) or ".") + (match[2] or "")

    return _DIAGRAM.sub(_table, _LINK.sub(moved, markdown))


def on_post_page(output: str, **_: Any) -> str:
    """Name the search for screen readers: the theme does not."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def site_path(path: str) -> str:
    """Return where a file of the repository is on the site, both relative to their roots."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"project/{path}" if path.endswith(".md") else f"source/{path}.md"


def _resolve(page: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def _content(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    language = _LANGUAGES.get(PurePosixPath(path).suffix, "text")
    head = f"---\ntitle: {path}\nsearch:\n  exclude: true\n---\n\n# `{path}`\n"
    return f"{head}\n``````{language}\n{text}\n``````\n"


def _table(diagram: re.Match[str]) -> str:
    """Return the transitions of a diagram. Its own drawing would need a script of several megabytes."""
    arrows = _ARROW.findall(diagram[1])
    rows = [f"| {'(start)' if state == '[*]' else state} | {event} | {to} |" for state, to, event in arrows]
    return "\n".join(["| state | event | next state |", "| --- | --- | --- |", *rows])
