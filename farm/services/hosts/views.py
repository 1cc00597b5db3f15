"""Describe each host, and find the one that a person names."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.checks.failures import Incident
from farm.core.devices.device import Blocker, blockers
from farm.core.devices.host_state import HostEvent, HostState
from farm.core.errors import NotFound
from farm.core.jobs.attempt import AttemptRecord
from farm.core.operations.event import Event
from farm.services.devices.views import Load, device_view, load_of
from farm.store.checks import incidents
from farm.store.devices import devices
from farm.store.devices import workload as device_workload
from farm.store.devices.devices import DeviceStatus, device_labels
from farm.store.devices.fleet import list_alike
from farm.store.hosts import hosts as host_store
from farm.store.hosts.hosts import Host
from farm.store.jobs import attempts
from farm.store.operations.event_log import last_events
from farm.wire.documents.hosts import HostDetail, HostView, RunningAttemptView

RECENT_EVENTS = 15
RECENT_INCIDENTS = 5
#: A condition that all phones of a host share is shown on the host.
_OF_THE_HOST = (Blocker.SESSION_NOT_LIVE, Blocker.HOST_DRAINING)


def host_named(connection: Connection, name: str) -> Host:
    """Return the host of that name.

    Raises:
        NotFound: there is none.
    """
    host = host_store.find_host(connection, HostId(name))
    if host is None:
        names = ", ".join(host.host_id for host in host_store.list_hosts(connection))
        hint = f"known here: {names}" if names else "none has joined yet: docs/install-hosts.md"
        raise NotFound(f"no host `{name}`", hint=hint)
    return host


def list_host_views(connection: Connection, *, after: HostId, limit: int) -> list[HostView]:
    """Return a page of the hosts, by id; those after one."""
    return _views(connection, host_store.hosts_page(connection, after=after, limit=limit))


def host_view(connection: Connection, host: Host) -> HostView:
    """Return the view of one host."""
    (view,) = _views(connection, [host])
    return view


def host_detail(connection: Connection, name: str) -> HostDetail:
    """Return one host with its devices, incidents and events. Raises like `host_named`."""
    host = host_named(connection, name)
    own = devices.list_devices(connection, host_id=host.host_id)
    past = incidents.last_incidents(connection, host.host_id, limit=RECENT_INCIDENTS)
    session = host_store.current_session(connection, host.host_id)
    return HostDetail(
        **dict(host_view(connection, host)),
        boot_id=None if session is None else session.boot_id,
        auto_admit=host.auto_admit,
        created_at=host.created_at,
        queued_jobs=sum(
            device_workload.count_waiting(connection, [device.device_id for device in own]).values()
        ),
        devices=tuple(device_view(connection, device) for device in own),
        past_incidents=tuple(incident for incident in past if incident.ended_at is not None),
        events=tuple(last_events(connection, "host", host.host_id, limit=RECENT_EVENTS)),
    )


def _views(connection: Connection, listed: Sequence[Host]) -> list[HostView]:
    """Return the views of hosts by as many statements as of one; a host that is not active takes one more."""
    load = load_of(connection)
    host_ids = [host.host_id for host in listed]
    states: defaultdict[HostId, Counter[str]] = defaultdict(Counter)
    for alike in list_alike(connection, host_ids):
        states[alike.status.host_id][_state_word(alike.status, load)] += alike.count
    runs: defaultdict[HostId, list[AttemptRecord]] = defaultdict(list)
    for attempt in attempts.live_attempts_of_hosts(connection, host_ids):
        runs[attempt.host_id].append(attempt)
    labels = device_labels(connection, {own.device_id for of_host in runs.values() for own in of_host})
    open_incidents: defaultdict[HostId, list[Incident]] = defaultdict(list)
    for incident in incidents.open_incidents(connection, host_ids[0] if len(host_ids) == 1 else None):
        open_incidents[incident.host_id].append(incident)

    def view(host: Host) -> HostView:
        session, decision = host.session, _last_decision(connection, host)
        return HostView.of(
            host,
            session=None if session is None else session.state,
            agent_version=None if session is None else session.agent_version,
            heartbeat_at=None if session is None else session.heartbeat_at,
            devices_by_state=dict(sorted(states[host.host_id].items())),
            runs=tuple(
                RunningAttemptView.of(attempt, device_label=labels.get(attempt.device_id))
                for attempt in runs[host.host_id]
            ),
            incidents=tuple(open_incidents[host.host_id]),
            since=decision.at if decision else None,
            why=decision.cause if decision else None,
        )

    return [view(host) for host in listed]


def _last_decision(connection: Connection, host: Host) -> Event | None:
    """Return what last kept an inactive host from work; None of an active one."""
    if host.state is HostState.ACTIVE:
        return None
    decided = last_events(connection, "host", host.host_id, kinds=(HostEvent.DRAINED, HostEvent.RETIRED))
    return decided[0] if decided else None


def _state_word(device: DeviceStatus, load: Load) -> str:
    if device.job_id is not None:
        return "busy"
    all_blockers = blockers(load.state_of(device), check=False)
    own = [blocker for blocker in all_blockers if blocker not in _OF_THE_HOST]
    return own[0] if own else "free"
