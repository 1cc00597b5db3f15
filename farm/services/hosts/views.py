"""Describe each host, and find the one that a person names."""

from collections import Counter

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.device import Blocker, blockers
from farm.core.devices.host_state import HostEvent, HostState
from farm.core.errors import NotFound
from farm.services.devices.views import Load, device_view, load_of
from farm.store.checks import incidents
from farm.store.devices import devices
from farm.store.devices import workload as device_workload
from farm.store.devices.devices import DeviceStatus
from farm.store.devices.fleet import statuses_of_host
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
    load = load_of(connection)
    page = host_store.hosts_page(connection, after=after, limit=limit)
    return [_view(connection, host, load) for host in page]


def host_view(connection: Connection, host: Host) -> HostView:
    """Return the view of one host."""
    return _view(connection, host, load_of(connection))


def host_detail(connection: Connection, name: str) -> HostDetail:
    """Return one host with its devices, incidents and events. Raises like `host_named`."""
    host = host_named(connection, name)
    own = devices.list_devices(connection, host_id=host.host_id)
    past = incidents.last_incidents(connection, host.host_id, limit=RECENT_INCIDENTS)
    return HostDetail(
        **dict(host_view(connection, host)),
        auto_admit=host.auto_admit,
        created_at=host.created_at,
        queued_jobs=sum(
            device_workload.count_waiting(connection, [device.device_id for device in own]).values()
        ),
        devices=tuple(device_view(connection, device) for device in own),
        past_incidents=tuple(incident for incident in past if incident.ended_at is not None),
        events=tuple(last_events(connection, "host", host.host_id, limit=RECENT_EVENTS)),
    )


def _view(connection: Connection, host: Host, load: Load) -> HostView:
    own = statuses_of_host(connection, host.host_id)
    label_by_device = {device.device_id: device.label for device in own}
    decided = last_events(connection, "host", host.host_id, kinds=(HostEvent.DRAINED, HostEvent.RETIRED))
    last_decision = decided[0] if decided and host.state is not HostState.ACTIVE else None
    session = host.session
    return HostView.of(
        host,
        session=None if session is None else session.state,
        agent_version=None if session is None else session.agent_version,
        heartbeat_at=None if session is None else session.heartbeat_at,
        devices_by_state=dict(sorted(Counter(_state_word(device, load) for device in own).items())),
        runs=tuple(
            RunningAttemptView.of(attempt, device_label=label_by_device.get(attempt.device_id))
            for attempt in attempts.live_attempts_of_host(connection, host.host_id)
        ),
        incidents=tuple(incidents.open_incidents(connection, host.host_id)),
        since=last_decision.at if last_decision else None,
        why=last_decision.cause if last_decision else None,
    )


def _state_word(device: DeviceStatus, load: Load) -> str:
    if device.job_id is not None:
        return "busy"
    all_blockers = blockers(load.state_of(device), check=False)
    own = [blocker for blocker in all_blockers if blocker not in _OF_THE_HOST]
    return own[0] if own else "free"
