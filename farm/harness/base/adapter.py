"""The interface of harness adapters: from settings to a run plan, from evidence to a reading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Gates
from farm.core.models.variant import Format, Manifest, model_file_name, variant_files
from farm.core.programs.bundle import Bundle
from farm.core.runs.derived.generation import TokenCounts
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import PlanFile, RunPlan
from farm.harness.base.options import HarnessOptions
from farm.harness.base.sustained import SustainedFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One cell to plan: settings are complete, with defaults filled in."""

    #: None where the harness runs no model.
    variant: Manifest | None
    #: The registered program for the device's ABI.
    bundle: Bundle
    backend: str
    settings: Mapping[str, SettingValue]
    #: Flags that the program does not have; it refuses to start with one of them.
    missing_flags: frozenset[str] = frozenset()
    timeout_s: float
    gates: Gates


class ClockScope(StrEnum):
    """The work that a clock covers: times of different scopes are not comparable."""

    #: One inference.
    INFERENCE = "inference"
    #: One inference, with the copies of its input and output.
    INFERENCE_AND_COPIES = "inference_and_copies"
    #: One token of a generation.
    DECODING_STEP = "decoding_step"
    #: The tokens of a prompt, or those of a generation.
    TOKENS = "tokens"
    #: The process, from its start to its end.
    PROCESS = "process"
    #: It is not known.
    UNSTATED = "unstated"


class Harness(HarnessOptions, Protocol):
    """An adapter. Pure: the same arguments give the same result, and nothing is read or written.

    `parser_version` rises whenever `parse` can return something else for the same evidence.
    """

    parser_version: int
    #: Formats of model files that it runs; empty where it accepts any.
    formats: Sequence[Format]
    #: True if the program has its flags by the names used here; some tools take positions or letters.
    flags_are_words: bool
    #: None where `sustained_obstacle` says why it cannot.
    sustained_flags: SustainedFlags | None
    #: The part of a run that the clock covers, in one line, shown where harnesses are compared.
    clock_covers: str
    clock_scope: ClockScope

    def token_counts(self, settings: Mapping[str, SettingValue]) -> TokenCounts | None:
        """Return the tokens of a run with these flags; None where it is not known to run a language model."""

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the run plan for the agent."""

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the reading of the evidence, or the failure. Never raises, whatever the output."""


#: Below the run's folder; language models have their caches there, too.
MODEL_FOLDER = "model"
_MODEL_WORD = "${file_model}"


def model_files(variant: Manifest, *, path: str = "") -> tuple[PlanFile, ...]:
    """Return a variant's files as plans list them, the model first, and others beside it.

    Args:
        variant: the variant.
        path: of the model below the run's folder; empty for nowhere, where it is the only file.
    """
    model, *further = variant_files(variant)
    if further and not path:
        path = f"{MODEL_FOLDER}/{model_file_name(variant.recipe.format)}"
    folder = path.rpartition("/")[0]
    return (
        PlanFile(name="model", digest=model.digest, size_bytes=model.size_bytes, path=path),
        *(
            PlanFile(
                name=f"beside_{number}",
                digest=file.digest,
                size_bytes=file.size_bytes,
                path=f"{folder}/{file.path}",
            )
            for number, file in enumerate(further)
        ),
    )


def located_words(words: Sequence[str], files: Sequence[PlanFile]) -> list[str]:
    """Return arguments of a program in which a model with files beside it is named by its place there."""
    path = files[0].path
    return [word.replace(_MODEL_WORD, "${work}/" + path) if path else word for word in words]
