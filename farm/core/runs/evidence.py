"""Evidence: what an agent brings back from one attempt, before anybody judges it."""

from dataclasses import dataclass
from datetime import datetime

from farm.core.devices.condition import Condition
from farm.core.devices.controls import ControlState
from farm.core.errors import Blame


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRecord:
    """The end of the process on the device, as the supervisor recorded it."""

    #: The exit code as the shell gives it: 128 + n for a death by signal n.
    code: int
    timed_out: bool = False
    #: From start to end on the phone's own clock (/proc/uptime, 10 ms steps).
    duration_s: float
    #: What the run's processes used of the CPU, user and system; None where the phone does not say. Far less
    #: than the duration, where another accelerator did the work.
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """The error that prevented a plan: an error of the tree, as data."""

    code: str
    blame: Blame
    transient: bool
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PassEvidence:
    """The evidence of one uncounted pass of a plan. It decides nothing about the attempt's outcome."""

    name: str
    argv: tuple[str, ...] = ()
    exit: ExitRecord | None = None
    trouble: RunError | None = None
    stdout: str = ""
    stderr: str = ""
    #: What the phone's log said meanwhile, in logcat's form `threadtime`.
    log: str = ""
    #: Of the command: which lines of the log are its own. None where the phone does not say.
    pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that came of one attempt. Either the run has an exit record, or `trouble` says why it has not.

    Output is decoded as UTF-8 with replacement; `*_dropped_bytes` counts what was over the plan's limit.
    """

    fence: int
    #: The command as it ran on this phone.
    argv: tuple[str, ...] = ()
    exit: ExitRecord | None = None
    trouble: RunError | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_dropped_bytes: int = 0
    stderr_dropped_bytes: int = 0
    before: Condition | None = None
    after: Condition | None = None
    #: The agent's clock around the run; for people, never for arithmetic.
    started_at: datetime | None = None
    finished_at: datetime | None = None
    #: Bytes that had to travel to the phone; 0 on a warm run.
    pushed_bytes: int = 0
    #: Seconds spent waiting for gates before the run.
    waited_s: float = 0.0
    #: True when the agent took the run over after a restart of its own.
    adopted: bool = False
    #: How long the phone could not be reached during the run, which went on meanwhile.
    away_s: float = 0.0
    #: What was set on the phone for the run, as read back.
    controls: tuple[ControlState, ...] = ()
    #: Further process starts after the run, uncounted.
    passes: tuple[PassEvidence, ...] = ()
