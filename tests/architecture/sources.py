"""The project's own files, and their syntax trees."""

import ast
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tracked() -> list[Path]:
    """Return the files that git tracks, or all files of a copy that has no history."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
        files = [ROOT / name for name in os.fsdecode(listed.stdout).split("\0") if name]
    else:
        files = [path for path in ROOT.rglob("*") if not any(p.startswith(".") for p in path.parts)]
    return [path for path in files if path.is_file()]


def sources(*folders: str) -> list[Path]:
    """Return the Python files below some folders, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    """Return the path from the root of the project."""
    return str(path.relative_to(ROOT))


@cache
def syntax_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file, parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def classes(*folders: str) -> Iterator[tuple[Path, ast.ClassDef]]:
    """Yield each class below some folders with its file."""
    for path in sources(*folders):
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.ClassDef):
                yield path, node
