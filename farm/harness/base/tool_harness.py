"""Base of the adapters of tools that run one model file."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from farm.core.base.setting_values import Flag, SettingValue
from farm.core.models.variant import Format, Manifest
from farm.core.programs.bundle import command_words, plan_files
from farm.core.runs.derived.generation import TokenCounts
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import DiagnosticPass, PlanFile, RunPlan
from farm.harness.base.adapter import ClockScope, RunRequest, located_words, model_files
from farm.harness.base.options import InputSettings
from farm.harness.base.pass_output import printed_files, with_clocked_lines, with_printed_files
from farm.harness.base.sustained import SustainedFlags
from farm.harness.failures.classification import classify
from farm.harness.failures.patterns import RUNTIME_PATTERNS, FailurePattern

#: The pass that brings back the files of a tool: older tools refuse or only warn of the flags that name them.
RESULT_FILES = "result_files"
#: The pass that times the loading of a tool that prints no time for it.
LOADING_RUN = "load_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPass:
    """A further, uncounted start of a tool after its run."""

    name: str
    #: Arguments of the program.
    words: Sequence[str]
    #: Beside the environment of the program.
    env: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    log_filters: tuple[str, ...] = ()
    #: Its time-out, where that is less than the run's own.
    limit_s: float = inf
    #: Files that it writes into the folder of the run, by their names, which the pass is to bring back.
    files: tuple[str, ...] = ()
    #: Whether each line that it prints is to have its time.
    clocked: bool = False


class ToolHarness(ABC):
    """An adapter of a tool that runs one model file."""

    name: str
    parser_version: int
    flags: Mapping[str, Flag]
    needs_model: bool = True
    formats: Sequence[Format]
    flags_are_words: bool = False
    backends: Sequence[str]
    metrics: Sequence[str] = ()
    sustained_flags: SustainedFlags | None
    sustained_obstacle: str | None = None
    clock_covers: str
    clock_scope: ClockScope = ClockScope.INFERENCE
    #: Texts that explain why a run failed.
    failure_patterns: Sequence[FailurePattern] = RUNTIME_PATTERNS

    @property
    def sustained_settings(self) -> Mapping[str, SettingValue]:
        """Return the only values of flags with which the tool can be told how long to work."""
        return {} if self.sustained_flags is None else self.sustained_flags.required

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why the tool cannot run the variant on the backend; None when it can."""
        if backend not in self.backends:
            return f"{self.name} has no backend {backend!r}: it offers {', '.join(self.backends)}"
        if variant is None:
            return f"{self.name} runs nothing without a model file"
        if variant.recipe.format not in self.formats:
            return (
                f"{self.name} reads {', '.join(self.formats)} files, and this one is {variant.recipe.format}"
            )
        if backend not in variant.backends:
            return f"the file is made for {', '.join(variant.backends)}, not for {backend}"
        return None

    def input_settings(self, variant: Manifest, given: Mapping[str, SettingValue]) -> InputSettings:
        """Return the flags that tell the tool its inputs; None where it takes them from the file alone."""
        return None

    def token_counts(self, settings: Mapping[str, SettingValue]) -> TokenCounts | None:
        """Return the tokens of a run with these flags; None of a tool that runs no language models."""
        return None

    @abstractmethod
    def plan(self, request: RunRequest) -> RunPlan:
        """Return the run plan for the agent."""

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the reading of the evidence, or the failure. Never raises, whatever the output."""
        failure = classify(evidence, patterns=self.failure_patterns)
        return failure or self.read_output(plan, evidence)

    @abstractmethod
    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the reading of a run that ended well, or why there is none."""


def tool_plan(
    name: str,
    request: RunRequest,
    words: Sequence[str],
    *,
    model_path: str = "",
    passes: Sequence[ToolPass] = (),
) -> RunPlan:
    """Return the plan of one process start and its diagnostic passes.

    Args:
        name: of the harness.
        request: the cell.
        words: arguments of the program, in the placeholders of run plans.
        model_path: of the model below the run's folder, where the tool wants it there.
        passes: further starts.
    """
    assert request.variant is not None
    env = request.bundle.env
    files = model_files(request.variant, path=model_path)
    return RunPlan(
        harness=name,
        backend=request.backend,
        settings=request.settings,
        files=(*plan_files(request.bundle), *files),
        argv=command_words(request.bundle, located_words(words, files)),
        env=env,
        timeout_s=request.timeout_s,
        gates=request.gates,
        passes=tuple(
            DiagnosticPass(
                name=tool_pass.name,
                argv=_pass_argv(request, tool_pass, files),
                env={**env, **tool_pass.env},
                properties=tool_pass.properties,
                log_filters=tool_pass.log_filters,
                timeout_s=min(request.timeout_s, tool_pass.limit_s),
            )
            for tool_pass in passes
        ),
    )


def _pass_argv(request: RunRequest, tool_pass: ToolPass, files: Sequence[PlanFile]) -> tuple[str, ...]:
    argv = command_words(request.bundle, located_words(tool_pass.words, files))
    argv = with_printed_files(argv, tool_pass.files) if tool_pass.files else argv
    return with_clocked_lines(argv) if tool_pass.clocked else argv


def result_files(evidence: Evidence) -> Mapping[str, bytes]:
    """Return the files of `RESULT_FILES` by name; none of a pass that failed, and none that is cut off."""
    return printed_files(pass_stdout(evidence, RESULT_FILES))


def pass_stdout(evidence: Evidence, name: str) -> str:
    """Return what a pass printed; nothing of one that failed."""
    return next(
        (
            tool_pass.stdout
            for tool_pass in evidence.passes
            if tool_pass.name == name and tool_pass.exit is not None and tool_pass.exit.code == 0
        ),
        "",
    )


def setting(settings: Mapping[str, SettingValue], flags: Mapping[str, Flag], name: str) -> SettingValue:
    """Return the value of a flag in a run; older plans lack the newer flags."""
    return settings.get(name, flags[name].default)


def count_setting(settings: Mapping[str, SettingValue], flags: Mapping[str, Flag], name: str) -> int:
    """Return the value of a flag that counts; at least 1, whatever a stored plan has."""
    value = setting(settings, flags, name)
    return max(1, int(value)) if isinstance(value, int | float) else 1


def flag_text(value: SettingValue) -> str:
    """Return a value as flag libraries read it, with dollars escaped from the plan's placeholders."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace("$", "$$")
