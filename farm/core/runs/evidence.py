"""Evidence: the files and readings that an agent brings back from one attempt, not assessed yet."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Self

from farm.core.base.bounds import (
    Argument,
    AtMost,
    Bytes,
    Fence,
    Note,
    Output,
    Range,
    RunSeconds,
    UptimeSeconds,
    Word,
)
from farm.core.devices.condition import Condition
from farm.core.devices.controls import ControlState
from farm.core.errors import Blame, FarmError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRecord:
    """The end of the process on the device, as the supervisor recorded it."""

    #: The exit code as the shell gives it: 128 + n for a death by signal n.
    code: Annotated[int, Range(-(2**31), 2**31 - 1)]
    timed_out: bool = False
    #: From start to end on the phone's own clock (/proc/uptime, 10 ms steps).
    duration_s: RunSeconds
    #: CPU time of the run's processes, user and system; None where the phone does not say. Far less
    #: than the duration, where another accelerator did the work.
    cpu_s: UptimeSeconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """The error that prevented a plan: an error of the tree, as data."""

    code: Word
    blame: Blame
    transient: bool
    message: Note
    hint: Note

    @classmethod
    def of(cls, error: FarmError) -> Self:
        """Return an error of the tree as data."""
        return cls(
            code=error.code,
            blame=error.blame,
            transient=error.transient,
            message=error.message,
            hint=error.hint,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PassEvidence:
    """The evidence of one uncounted pass of a plan. It decides nothing about the attempt's outcome."""

    name: Word
    argv: Annotated[tuple[Argument, ...], AtMost(10_000)] = ()
    exit: ExitRecord | None = None
    error: RunError | None = None
    stdout: Output = ""
    stderr: Output = ""
    #: The phone's log during the run, in logcat's form `threadtime`.
    log: Output = ""
    #: Of the command: which lines of the log are its own. None where the phone does not say.
    pid: Annotated[int, Range(0, 2**31 - 1)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that came of one attempt. Either the run has an exit record, or `error` says why it has not.

    Output is decoded as UTF-8 with replacement; `*_dropped_bytes` counts what was over the plan's limit.
    """

    fence: Fence
    #: The command as it ran on this phone.
    argv: Annotated[tuple[Argument, ...], AtMost(10_000)] = ()
    exit: ExitRecord | None = None
    error: RunError | None = None
    stdout: Output = ""
    stderr: Output = ""
    stdout_dropped_bytes: Bytes = 0
    stderr_dropped_bytes: Bytes = 0
    before: Condition | None = None
    after: Condition | None = None
    #: The agent's clock around the run; for people, never for arithmetic.
    started_at: datetime | None = None
    finished_at: datetime | None = None
    #: Bytes that had to travel to the phone; 0 on a warm run.
    pushed_bytes: Bytes = 0
    #: Seconds spent waiting for gates before the run.
    waited_s: RunSeconds = 0.0
    #: True when the agent took the run over after a restart of its own.
    adopted: bool = False
    #: Total time during which the phone could not be reached while the run went on.
    away_s: RunSeconds = 0.0
    #: The controls set on the phone for the run, as read back.
    controls: Annotated[tuple[ControlState, ...], AtMost(1024)] = ()
    #: The samples that the phone took of itself during the run, as its sampler wrote them; read by
    #: `farm.phone.condition.run_trace`. Empty where it took none.
    trace: Output = ""
    #: The meters of its power rails right before and after the run, as the phone prints them; read by
    #: `farm.phone.condition.energy_rails`. Empty where the plan does not ask for them, or it has none.
    rails_before: Output = ""
    rails_after: Output = ""
    #: Further process starts after the run, uncounted.
    passes: Annotated[tuple[PassEvidence, ...], AtMost(100)] = ()
