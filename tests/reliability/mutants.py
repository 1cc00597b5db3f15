"""The enforcement of each invariant, taken away one piece at a time, and the test that must notice."""

from dataclasses import dataclass
from pathlib import Path

import yaml


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


def _mutants() -> tuple[Mutant, ...]:
    told = yaml.safe_load((Path(__file__).parent / "mutants.yaml").read_text(encoding="utf-8"))
    return tuple(
        Mutant(
            name=name,
            invariants=tuple(each["invariants"]),
            without=each["without"],
            changes=tuple(Change(**change) for change in each["changes"]),
            test=each["test"],
        )
        for name, each in told.items()
    )


MUTANTS = _mutants()
