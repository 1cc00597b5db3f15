"""Documents about hosts, and operator requests."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId
from farm.core.checks.failures import HostIncident
from farm.core.devices.device import Blocker
from farm.core.devices.host_state import HostState, SessionState
from farm.core.operations.event import Event
from farm.core.operations.host_clock import ClockDifference
from farm.wire.base import Count, Wire
from farm.wire.documents.devices import DeviceView, OperatorRequest


class RunningAttemptView(Wire):
    """An attempt under way."""

    attempt_id: AttemptId
    job_id: JobId
    device_id: DeviceId
    device_label: str | None
    state: str
    claimed_at: datetime


class HostView(Wire):
    """GET /api/v1/hosts."""

    host_id: HostId
    state: HostState
    #: Of its agent's last session; None before it ever called.
    session: SessionState | None
    agent_version: str | None
    heartbeat_at: datetime | None
    #: Number of devices that are `free`, `busy`, or blocked: `not_online`, `health_bad`, ...
    devices_by_state: dict[str, int]
    runs: tuple[RunningAttemptView, ...]
    #: Greatest number of concurrent runs; None: any number.
    max_runs: int | None
    incidents: tuple[HostIncident, ...]
    #: Time and cause of its drain or retirement.
    since: datetime | None
    why: str | None
    #: How far its clock was ahead of the farm's when they were compared last; negative: behind; None: never.
    clock_ahead_s: float | None
    #: The true difference is at most so far from that.
    clock_uncertainty_s: float | None
    clock_compared_at: datetime | None

    @property
    def clock(self) -> ClockDifference | None:
        """Return the last comparison of its clock with the farm's; None if there was none."""
        if self.clock_ahead_s is None or self.clock_uncertainty_s is None:
            return None
        return ClockDifference(ahead_s=self.clock_ahead_s, uncertainty_s=self.clock_uncertainty_s)

    @property
    def is_idle(self) -> bool:
        """Return whether no run or remains of one are on any reachable device of the host."""
        return not self.runs and not self.devices_by_state.get(Blocker.NOT_CLEANED)


class HostDetail(HostView):
    """GET /api/v1/hosts/{host}."""

    #: Of its machine's present boot, to detect whether the client runs on it; None without a connected agent.
    boot_id: str | None = None
    auto_admit: bool
    created_at: datetime
    #: Jobs that wait for its devices.
    queued_jobs: int
    devices: tuple[DeviceView, ...]
    #: The newest first.
    past_incidents: tuple[HostIncident, ...]
    events: tuple[Event, ...]


class LimitRequest(OperatorRequest):
    """POST /api/v1/hosts/{host}/limit; None removes the limit."""

    max_runs: Annotated[int, Field(ge=1, le=10_000)] | None


class HostChange(Wire):
    """The result of a request: `changed` is false when it was already so."""

    changed: bool
    #: A message for a person.
    message: str
    host: HostView


class HostRetirementPlan(Wire):
    """GET /api/v1/hosts/{host}/retirement: the work that retiring it would end."""

    host: HostView
    devices: tuple[DeviceId, ...]
    #: They wait for the devices, on whichever host these are attached next.
    queued_jobs: int
    matrices: tuple[Count, ...]
