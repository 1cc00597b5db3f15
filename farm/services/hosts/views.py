"""What there is to say about each host, and which one a person means."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.checks.incident import Incident
from farm.core.devices.device import Blocker, blockers
from farm.core.devices.host_state import HostEvent, HostState
from farm.core.errors import NotFound
from farm.core.jobs.attempt import Attempt
from farm.services.devices.views import Load, device_view, load_of
from farm.store.checks import incidents
from farm.store.devices import devices
from farm.store.devices import workload as device_workload
from farm.store.devices.devices import Device
from farm.store.hosts import transitions as host_transitions
from farm.store.hosts.transitions import Host
from farm.store.jobs import attempts
from farm.store.operations.event_history import last_events
from farm.wire.documents.devices import EventView
from farm.wire.documents.hosts import HostDetail, HostView, IncidentView, RunningAttemptView

RECENT_EVENTS = 15
RECENT_INCIDENTS = 5
#: What all phones of a host have in common is said of the host.
_OF_THE_HOST = (Blocker.SESSION_NOT_LIVE, Blocker.HOST_DRAINING)


def host_named(connection: Connection, name: str) -> Host:
    """The host of that name.

    Raises:
        NotFound: there is none.
    """
    found = host_transitions.find_host(connection, HostId(name))
    if found is None:
        known = ", ".join(host.host_id for host in host_transitions.list_hosts(connection))
        hint = f"known here: {known}" if known else "none has joined yet: docs/install-hosts.md"
        raise NotFound(f"no host `{name}`", hint=hint)
    return found


def list_host_views(connection: Connection) -> list[HostView]:
    """All hosts, by id."""
    load = load_of(connection)
    return [_view(connection, host, load) for host in host_transitions.list_hosts(connection)]


def host_view(connection: Connection, host: Host) -> HostView:
    """One host."""
    return _view(connection, host, load_of(connection))


def host_detail(connection: Connection, name: str) -> HostDetail:
    """One host with its phones and what happened to it.

    Raises:
        NotFound: there is none of that name.
    """
    host = host_named(connection, name)
    own = devices.list_devices(connection, host_id=host.host_id)
    past = incidents.last_incidents(connection, host.host_id, limit=RECENT_INCIDENTS)
    story = last_events(connection, "host", host.host_id, limit=RECENT_EVENTS)
    return HostDetail(
        **dict(host_view(connection, host)),
        auto_admit=host.auto_admit,
        created_at=host.created_at,
        queued_jobs=sum(device_workload.count_waiting(connection, [each.device_id for each in own]).values()),
        devices=tuple(device_view(connection, device) for device in own),
        past_incidents=tuple(_incident(incident) for incident in past if incident.ended_at is not None),
        events=tuple(EventView.model_validate(each, from_attributes=True) for each in story),
    )


def _view(connection: Connection, host: Host, load: Load) -> HostView:
    own = devices.list_devices(connection, host_id=host.host_id)
    decided = last_events(connection, "host", host.host_id, kinds=(HostEvent.DRAINED, HostEvent.RETIRED))
    told = decided[0] if decided and host.state is not HostState.ACTIVE else None
    session = host.session
    return HostView(
        host_id=host.host_id,
        state=host.state,
        session=None if session is None else session.state,
        agent_version=None if session is None else session.agent_version,
        heartbeat_at=None if session is None else session.heartbeat_at,
        phones=_count_by_presence(own, load),
        runs=tuple(_run(attempt) for attempt in attempts.live_attempts_of_host(connection, host.host_id)),
        max_runs=host.max_runs,
        incidents=tuple(map(_incident, incidents.open_incidents(connection, host.host_id))),
        since=told.at if told else None,
        why=told.cause if told else None,
    )


def _count_by_presence(own: Sequence[Device], load: Load) -> dict[str, int]:
    return dict(sorted(Counter(_state_word(device, load) for device in own).items()))


def _state_word(device: Device, load: Load) -> str:
    if device.job_id is not None:
        return "busy"
    found = blockers(load.state_of(device), check=False)
    own = [blocker for blocker in found if blocker not in _OF_THE_HOST]
    return own[0].name.lower() if own else "free"


def _run(attempt: Attempt) -> RunningAttemptView:
    return RunningAttemptView.model_validate(
        {name: getattr(attempt, name) for name in RunningAttemptView.model_fields}
    )


def _incident(incident: Incident) -> IncidentView:
    return IncidentView.model_validate({name: getattr(incident, name) for name in IncidentView.model_fields})
