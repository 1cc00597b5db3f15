"""Documents about hosts, and operator requests."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId
from farm.core.devices.host_state import HostState, IncidentKind, SessionState
from farm.wire.base import Count, Wire
from farm.wire.documents.devices import DeviceView, EventView, OperatorRequest


class IncidentView(Wire):
    """Something that hit a host, or several of its phones at once."""

    incident_id: Count
    kind: IncidentKind
    began_at: datetime
    #: None while it lasts.
    ended_at: datetime | None
    #: The phones it hit; what went wrong with them then is not held against them.
    devices: tuple[DeviceId, ...]
    cause: str


class RunningAttemptView(Wire):
    """An attempt under way."""

    attempt_id: AttemptId
    job_id: JobId
    device_id: DeviceId
    state: str
    claimed_at: datetime


class HostView(Wire):
    """GET /api/v1/hosts."""

    host_id: HostId
    state: HostState
    #: Of its agent's last life; None before it ever called.
    session: SessionState | None
    agent_version: str | None
    heartbeat_at: datetime | None
    #: How many phones are `free`, `busy`, or kept from work by what: `not_online`, `health_bad`, ...
    phones: dict[str, int]
    runs: tuple[RunningAttemptView, ...]
    #: How many runs it may have at once; None: any number.
    max_runs: int | None
    incidents: tuple[IncidentView, ...]
    #: Since when it is drained or retired, and why.
    since: datetime | None
    why: str | None

    @property
    def is_idle(self) -> bool:
        """Tell whether no run or remains of one are on any reachable device of the host."""
        return not self.runs and not self.phones.get("not_cleaned")


class HostDetail(HostView):
    """GET /api/v1/hosts/{host}."""

    auto_admit: bool
    created_at: datetime
    #: What waits for its phones.
    queued_jobs: int
    devices: tuple[DeviceView, ...]
    #: The newest first.
    past_incidents: tuple[IncidentView, ...]
    events: tuple[EventView, ...]


class LimitRequest(OperatorRequest):
    """POST /api/v1/hosts/{host}/limit; None takes the limit away."""

    max_runs: Annotated[int, Field(ge=1, le=10_000)] | None


class HostChange(Wire):
    """The result of a request: `changed` is false when it was already so."""

    changed: bool
    #: In words, for a person.
    said: str
    host: HostView


class HostRetirementPlan(Wire):
    """GET /api/v1/hosts/{host}/retirement: what retiring it would end."""

    host: HostView
    devices: tuple[DeviceId, ...]
    #: They wait for the phones, wherever these turn up next.
    queued_jobs: int
    matrices: tuple[Count, ...]
