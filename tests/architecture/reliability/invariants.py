"""The invariants, what enforces each, and the fault scenarios: read from the YAML files beside this one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that enforces a promise. Invariant: `anchor` occurs in the file."""

    what: str
    file: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """An invariant."""

    text: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A fault, and what is to come of it; `under` is the heading of those from here on."""

    fault: str
    expected: str
    under: str | None = None


def _read(name: str) -> Mapping[Any, Any]:
    found: Mapping[Any, Any] = yaml.safe_load((_FOLDER / name).read_text(encoding="utf-8"))
    return found


PROMISES: dict[str, Promise] = {
    name: Promise(text=told["text"], rules=tuple(Rule(**rule) for rule in told["rules"]))
    for name, told in _read("invariants.yaml").items()
}
SCENARIOS: dict[int, Scenario] = {
    number: Scenario(**told) for number, told in _read("scenarios.yaml").items()
}
