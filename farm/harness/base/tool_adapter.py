"""What adapters of tools that run one model file have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Format, Manifest
from farm.core.programs.bundle import command_words, plan_files
from farm.core.runs.plan import DiagnosticPass, PlanFile, RunPlan
from farm.harness.base.adapter import RunRequest, model_file
from farm.harness.base.options import Flag


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPass:
    """A further start of a tool after its run, that counts for nothing."""

    name: str
    #: What the program is called with.
    words: Sequence[str]
    properties: Mapping[str, str] = field(default_factory=dict)
    log_filters: tuple[str, ...] = ()
    #: Its longest, where that is less than the run's own.
    limit_s: float = inf


def find_unsupported_reason(
    name: str,
    variant: Manifest | None,
    backend: str,
    *,
    backends: Sequence[str],
    formats: Sequence[Format],
) -> str | None:
    """Why a tool cannot run a file on a backend; None when it can."""
    if backend not in backends:
        return f"{name} has no backend {backend!r}: it offers {', '.join(backends)}"
    if variant is None:
        return f"{name} runs nothing without a model file"
    if variant.recipe.format not in formats:
        return f"{name} reads {', '.join(formats)} files, and this one is {variant.recipe.format}"
    if backend not in variant.backends:
        return f"the file is made for {', '.join(variant.backends)}, not for {backend}"
    return None


def tool_plan(
    name: str,
    request: RunRequest,
    words: Sequence[str],
    *,
    file: PlanFile | None = None,
    passes: Sequence[ToolPass] = (),
) -> RunPlan:
    """The plan of one process start, with further ones behind it.

    Args:
        name: of the harness.
        request: the cell.
        words: what the program is called with, in the placeholders of run plans.
        file: the model as the plan lists it, where that is not what all do.
        passes: further starts.
    """
    assert request.variant is not None
    env = request.bundle.env
    return RunPlan(
        harness=name,
        backend=request.backend,
        settings=request.settings,
        files=(*plan_files(request.bundle), file or model_file(request.variant)),
        argv=command_words(request.bundle, words),
        env=env,
        timeout_s=request.timeout_s,
        gates=request.gates,
        passes=tuple(
            DiagnosticPass(
                name=each.name,
                argv=command_words(request.bundle, each.words),
                env=env,
                properties=each.properties,
                log_filters=each.log_filters,
                timeout_s=min(request.timeout_s, each.limit_s),
            )
            for each in passes
        ),
    )


def setting(settings: Mapping[str, SettingValue], flags: Mapping[str, Flag], name: str) -> SettingValue:
    """What a run is given for a flag; older plans do not know the newer ones."""
    return settings.get(name, flags[name].default)


def count_setting(settings: Mapping[str, SettingValue], flags: Mapping[str, Flag], name: str) -> int:
    """A flag that says how often something is done; at least 1, whatever stands in a stored plan."""
    value = setting(settings, flags, name)
    return max(1, int(value)) if isinstance(value, int | float) else 1


def flag_text(value: SettingValue) -> str:
    """As flag libraries read it, with dollars kept from the plan's placeholders."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace("$", "$$")
