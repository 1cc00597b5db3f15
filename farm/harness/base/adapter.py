"""What every harness adapter offers: from settings to a run plan, from evidence to a reading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Gates
from farm.core.models.variant import Format, Manifest
from farm.core.programs.bundle import Bundle
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import PlanFile, RunPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One setting a harness knows, its type's example being the default."""

    default: SettingValue
    help: str
    minimum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One cell, ready to be planned: settings are complete, defaults filled in."""

    #: None where the harness runs no model.
    variant: Manifest | None
    #: The registered program for the phone's ABI.
    bundle: Bundle
    backend: str
    settings: Mapping[str, SettingValue]
    #: Flags that the program does not know, and must not be given: an older one refuses to start.
    missing_flags: frozenset[str] = frozenset()
    timeout_s: float
    gates: Gates


class Harness(Protocol):
    """An adapter. Pure: the same arguments give the same answer, and nothing is read or written.

    `parser_version` rises whenever `parse` can give another answer for the same evidence.
    """

    name: str
    parser_version: int
    flags: Mapping[str, Flag]
    #: Whether a run needs a model file; where not, matrices of it have no variant axes.
    needs_model: bool
    #: Formats of model files that it runs; empty where it does not tell them apart.
    formats: Sequence[Format]
    #: Whether the program knows its flags by the names they have here; some tools go by place, or by letters.
    flags_are_words: bool
    #: Every backend the tool has a word for; `unsupported` says which of them cannot be measured.
    backends: Sequence[str]
    #: What the measurement's clock covers, in one line, shown where harnesses are compared.
    clock_covers: str

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Why this harness cannot run the variant, or without one, on the backend; None when it can."""

    def plan(self, request: RunRequest) -> RunPlan:
        """What the agent is to do."""

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """What the evidence says. Never raises, whatever the output."""


def model_file(variant: Manifest) -> PlanFile:
    """A variant's file as plans list it."""
    return PlanFile(name="model", digest=variant.digest, size_bytes=variant.size_bytes)


def flag_defaults(harness: Harness) -> dict[str, SettingValue]:
    """Every setting a harness knows, as it is where nobody says otherwise."""
    return {name: flag.default for name, flag in harness.flags.items()}
