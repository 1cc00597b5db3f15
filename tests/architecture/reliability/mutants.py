"""The enforcement of each invariant, taken away one piece at a time, and the test that must notice.

`make mutants` tries them all: each in a copy of the project, in a folder of its own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
_COPIED = ("agents", "docs", "farm", "harnesses", "migrations", "tests", "alembic.ini", "pyproject.toml")
#: pytest's exit code when tests ran and some failed; others say that none ran.
_FAILED = 1
_CHECKER = "tests/support/invariants/invariants.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Text that stands in a file exactly once, and what it becomes."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """The project with one piece of enforcement removed."""

    name: str
    invariants: tuple[str, ...]
    #: What is missing then, in words.
    without: str
    changes: tuple[Change, ...]
    #: As pytest is given it; `[...]` picks one of a test's parameters.
    test: str
    #: Whether the long tests try it, too.
    sampled: bool = False


def _mutants() -> tuple[Mutant, ...]:
    told = yaml.safe_load((Path(__file__).parent / "mutants.yaml").read_text(encoding="utf-8"))
    return tuple(
        Mutant(
            name=name,
            invariants=tuple(each.pop("invariants")),
            changes=tuple(Change(**change) for change in each.pop("changes")),
            **each,
        )
        for name, each in told.items()
    )


MUTANTS = _mutants()


@contextmanager
def mutated(copy: Path, mutant: Mutant) -> Iterator[None]:
    """The copy without that piece of enforcement, while the block runs."""
    before = {change.file: (copy / change.file).read_text(encoding="utf-8") for change in mutant.changes}
    try:
        for change in mutant.changes:
            text = (copy / change.file).read_text(encoding="utf-8")
            assert text.count(change.old) == 1, f"{mutant.name}: {change.old!r} is not once in {change.file}"
            (copy / change.file).write_text(text.replace(change.old, change.new), encoding="utf-8")
        yield
    finally:
        for file, text in before.items():
            (copy / file).write_text(text, encoding="utf-8")


def copy_project(folder: Path) -> Path:
    """A copy to change, with the bytecode of what stays as it is: sources keep their times.

    Without what pytest rewrote: that says nothing of where it is read.
    """
    for name in _COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*-pytest-*.pyc"))
        else:
            shutil.copy2(source, target)
    return folder


def outcome(copy: Path, test: str) -> subprocess.CompletedProcess[str]:
    """Run one test in a copy."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", test],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def survives(copy: Path, mutant: Mutant) -> str | None:
    """What pytest said where the mutant was not noticed; None where its test failed, as it must."""
    with mutated(copy, mutant):
        done = outcome(copy, mutant.test)
    # tests/support/invariants/invariants.py checks a test's farm at its end: that is an error, not a failure.
    noticed = done.returncode == _FAILED and (" failed" in done.stdout or _CHECKER in done.stdout)
    return None if noticed else f"exit {done.returncode}: {done.stdout[-1500:]}{done.stderr[-500:]}"


def main(names: Sequence[str]) -> int:
    """Try all mutants, or those named; how many survive, as an exit code."""
    surviving = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = copy_project(Path(folder))
        for mutant in [each for each in MUTANTS if not names or each.name in names]:
            said = survives(copy, mutant)
            surviving += said is not None
            sys.stdout.write(f"{'noticed ' if said is None else 'SURVIVES'} {mutant.name}\n{said or ''}")
            sys.stdout.flush()
    return int(surviving > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
