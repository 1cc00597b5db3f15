"""An attempt, and its states as data. A live attempt row is the lease of its device."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from farm.core.base.bounds import MAX_FENCE
from farm.core.base.ids import AttemptId, DeviceId, Digest, FactsId, HostId, JobId, SessionId
from farm.core.errors import Blame
from farm.core.runs.measurement import Outcome
from farm.core.runs.plan import RunPlan

#: A database that was put back has forgotten fewer attempts of one device than this.
MAX_FORGOTTEN = 1_000_000


class AttemptState(StrEnum):
    """The state of an attempt."""

    CLAIMED = "claimed"
    PREPARING = "preparing"
    MEASURING = "measuring"
    REPORTING = "reporting"
    FINISHED = "finished"
    #: Nothing ran; costs the job nothing.
    RETURNED = "returned"
    #: Its session was lost; its own late report may still finish it.
    LOST = "lost"


class AttemptEvent(StrEnum):
    """Attempt events."""

    #: Its agent prepares the device.
    PREPARED = "attempt_preparing"
    #: The program was started.
    STARTED = "attempt_measuring"
    #: The run has ended, and its evidence is being sent.
    ENDED = "attempt_reporting"
    #: The farm has evaluated the evidence.
    SETTLED = "attempt_finished"
    #: Nothing ran: the device was not fit, or the agent did not start in time.
    RETURNED = "attempt_returned"
    #: Its agent is lost, or gave it up.
    LOST = "attempt_lost"
    #: Its job was cancelled, and its agent has stopped it.
    CANCELLED = "attempt_cancelled"


LIVE_STATES: tuple[AttemptState, ...] = (
    AttemptState.CLAIMED,
    AttemptState.PREPARING,
    AttemptState.MEASURING,
    AttemptState.REPORTING,
)

_S, _E = AttemptState, AttemptEvent

#: Phases are skipped where a beat was lost, never walked back.
TRANSITIONS: dict[tuple[AttemptState, AttemptEvent], AttemptState] = {
    (_S.CLAIMED, _E.PREPARED): _S.PREPARING,
    (_S.CLAIMED, _E.STARTED): _S.MEASURING,
    (_S.PREPARING, _E.STARTED): _S.MEASURING,
    (_S.CLAIMED, _E.ENDED): _S.REPORTING,
    (_S.PREPARING, _E.ENDED): _S.REPORTING,
    (_S.MEASURING, _E.ENDED): _S.REPORTING,
    **{(state, _E.SETTLED): _S.FINISHED for state in (*LIVE_STATES, _S.LOST)},
    (_S.CLAIMED, _E.RETURNED): _S.RETURNED,
    (_S.PREPARING, _E.RETURNED): _S.RETURNED,
    **{(state, _E.LOST): _S.LOST for state in LIVE_STATES},
    **{(state, _E.CANCELLED): _S.FINISHED for state in LIVE_STATES},
}


def advance(state: AttemptState, event: AttemptEvent) -> AttemptState | None:
    """Return the state after an event; None when the event cannot happen there."""
    return TRANSITIONS.get((state, event))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """The outcome of an attempt or job. `blame` is None when it succeeded, or when nothing ran."""

    outcome: Outcome
    blame: Blame | None = None
    code: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """An attempt of a job on a device, as it is stored, without its plan."""

    attempt_id: AttemptId
    job_id: JobId
    device_id: DeviceId
    host_id: HostId
    session_id: SessionId
    facts_id: FactsId | None
    fence: int
    cpu_domain: str | None
    state: AttemptState
    outcome: Outcome | None
    blame: Blame | None
    code: str | None
    message: str | None
    #: Before the run, in its agent's words.
    waiting_for: str | None
    report_digest: Digest | None
    claimed_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(AttemptRecord):
    """An attempt, with what its agent is to do."""

    plan: RunPlan


def is_plausible(claimed: int, fence: int) -> bool:
    """Return whether a device or its agent can know a token; `fence` is the last that the farm gave."""
    return claimed <= min(fence + MAX_FORGOTTEN, MAX_FENCE - 1)
