"""A run plan: all an agent needs to run one job on one phone. The agent knows nothing of harnesses."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from string import Template

from farm.core.base.bounds import FileDigest, RelativePath
from farm.core.base.ids import AttemptId
from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Gates
from farm.core.devices.controls import Controls
from farm.core.runs.placement import Placement

#: The pass that shows which hardware ran.
PLACEMENT_PROBE = "placement"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A file that must be in the phone's cache, verified, before the run starts."""

    #: Its name in the plan's argv: `${file_NAME}`, so a Python identifier.
    name: str
    digest: FileDigest
    size_bytes: int
    executable: bool = False
    #: Its path below the run's folder, as a link into the cache: `lib/libfoo.so`. Empty: nowhere.
    path: RelativePath = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticPass:
    """A further process start after the run. Its times count for nothing: what it tells would slow a run."""

    #: `placement`, `op_profile`, `memory`.
    name: str
    #: Placeholders as in the plan's own.
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    #: System properties set for the pass and put back afterwards, e.g. `debug.nn.vlog`.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Lines of the phone's log to bring back, as logcat writes filters; empty for none.
    log_filters: tuple[str, ...] = ()
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierPlacement:
    """The placement in a pass after an earlier run of the same cell, system build and program."""

    attempt_id: AttemptId
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The instructions of a run; frozen at the claim and stored with the attempt for a later reparse.

    Placeholders in `argv` and `env` are `${work}` (the run's own folder on the phone, its current folder too)
    and `${file_NAME}` (the path of a plan file in the phone's cache). A literal dollar is `$$`.
    """

    harness: str
    backend: str
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    files: tuple[PlanFile, ...]
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    #: From process start to its end; the supervisor on the phone kills the process group then.
    timeout_s: float
    gates: Gates = field(default_factory=Gates)
    #: At most this much of each of stdout and stderr is brought back; the rest is counted.
    output_limit_bytes: int = 4 * 1024 * 1024
    controls: Controls = field(default_factory=Controls)
    #: The phone samples its clocks, memory, heat and battery during the run: `farm.core.runs.trace`.
    sampling: bool = True
    #: Seconds that the one process is to work back to back; None for a run of some iterations.
    sustained_s: int | None = None
    #: The energy of the phone's power rails is read right before and after the run.
    reads_rails: bool = False
    #: Carried out after a run that ended well.
    passes: tuple[DiagnosticPass, ...] = ()
    #: The reason why it has no pass `placement`, where its harness would want one.
    shown: EarlierPlacement | None = None

    def file(self, name: str) -> PlanFile:
        """Return the plan's file of that name.

        Raises:
            KeyError: it has none.
        """
        return {file.name: file for file in self.files}[name]


#: Of a path below a run's folder.
MAX_PATH_BYTES = 200


def path_problem(path: str) -> str | None:
    """Return why a file cannot have this path below a run's folder; None when it can."""
    if len(path.encode(errors="replace")) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if not path.isprintable():
        return "holds a control character, or one that is no text"
    if path.startswith("/"):
        return "is absolute"
    if any(part in ("", ".", "..") for part in path.split("/")):
        return "is not a plain path below a folder"
    if path != path.strip():
        return "begins or ends with a space"
    return None


def folders_of(paths: Collection[str]) -> set[str]:
    """Return the folders in which files with these paths lie, outer ones too."""
    return {path[:end] for path in paths for end, sign in enumerate(path) if sign == "/"}


def fill_argv(plan: RunPlan, *, work: str, path_by_name: Mapping[str, str]) -> list[str]:
    """Return the command of a plan on one device.

    Raises:
        KeyError: the plan names a placeholder that nothing fills.
    """
    values = placeholder_values(work=work, path_by_name=path_by_name)
    return [Template(word).substitute(values) for word in plan.argv]


def fill_env(plan: RunPlan, *, work: str, path_by_name: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a plan on one device; raises like `fill_argv`."""
    values = placeholder_values(work=work, path_by_name=path_by_name)
    return {name: Template(value).substitute(values) for name, value in plan.env.items()}


def placeholder_values(*, work: str, path_by_name: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a plan's placeholders on one device."""
    return {"work": work, **{f"file_{name}": path for name, path in path_by_name.items()}}
