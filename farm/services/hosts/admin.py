"""What operators decide about a host: whether it gets work, how much at once, and whether it stays."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.devices.host_state import TARGET_BY_HOST_EVENT, HostEvent, HostState, SessionState
from farm.core.errors import Conflict
from farm.services.checks.incidents import end_incidents
from farm.services.hosts.host_teardown import abandon_session, mark_devices_absent
from farm.services.hosts.views import host_named, host_view
from farm.store.devices import devices
from farm.store.devices import workload as device_workload
from farm.store.hosts import hosts
from farm.store.hosts import transitions as host_transitions
from farm.store.hosts.transitions import Host
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.hosts import HostChange, HostRetirementPlan, LimitRequest

_LOOK_AGAIN_HINT = "look again with `farm host list`, then decide"
#: What attempts are lost by whose host an operator took away.
RETIRED = "host.retired"


def change_host(
    connection: Connection, name: str, event: HostEvent, asked: OperatorRequest, *, now: datetime
) -> HostChange:
    """Drain a host, or give it work again; what runs there goes on in any case.

    Raises:
        NotFound: there is no such host.
        Conflict: it is in no state for that, or somebody else was quicker.
    """
    host = host_named(connection, name)
    if host.state is TARGET_BY_HOST_EVENT[event]:
        return _change(connection, host, f"{host.host_id} is {host.state} already", changed=False)
    _move(connection, host, event, asked, now=now)
    after = host_named(connection, name)
    said = f"{after.host_id} is {after.state} now"
    runs = len(host_view(connection, after).runs)
    if after.state is HostState.DRAINING:
        said += f"; {runs} of its runs go on to their ends" if runs else "; nothing runs there"
    return _change(connection, after, said)


def limit_host(connection: Connection, name: str, asked: LimitRequest, *, now: datetime) -> HostChange:
    """Set how many runs a host may have at once; those that are more already go on to their ends.

    Raises:
        NotFound: there is no such host.
    """
    host = host_named(connection, name)
    words = f"{asked.max_runs or 'any number of'} {'run' if asked.max_runs == 1 else 'runs'} at once"
    if host.max_runs == asked.max_runs:
        return _change(connection, host, f"{host.host_id} may have {words} already", changed=False)
    actor = f"user:{asked.by}"
    host_transitions.put_max_runs(connection, host, asked.max_runs, now=now, actor=actor, reason=asked.reason)
    return _change(connection, host_named(connection, name), f"{host.host_id} may have {words}")


def retirement_plan(connection: Connection, name: str) -> HostRetirementPlan:
    """What retiring a host would end.

    Raises:
        NotFound: there is no such host.
    """
    host = host_named(connection, name)
    own = devices.list_devices(connection, host_id=host.host_id)
    waiting = device_workload.count_waiting(connection, [each.device_id for each in own])
    return HostRetirementPlan(
        host=host_view(connection, host),
        devices=tuple(device.device_id for device in own),
        queued_jobs=sum(waiting.values()),
        matrices=tuple(sorted(matrix_id for matrix_id in waiting if matrix_id is not None)),
    )


def retire_host(connection: Connection, name: str, asked: OperatorRequest, *, now: datetime) -> HostChange:
    """Take a host out of the farm: its credential opens nothing from now on, and what it runs is lost.

    What is queued for its phones waits until they turn up at another host, or are retired, too.

    Raises:
        NotFound: there is no such host.
        Conflict: somebody else was quicker.
    """
    host = host_named(connection, name)
    if host.state is HostState.RETIRED:
        return _change(connection, host, f"{host.host_id} is retired already", changed=False)
    _move(connection, host, HostEvent.RETIRED, asked, now=now)
    lost = _close(connection, host, asked, now=now)
    end_incidents(connection, now=now)
    said = f"{host.host_id} is retired now; {lost} of its runs were lost, and its phones are absent"
    return _change(connection, host_named(connection, name), said)


def _close(connection: Connection, host: Host, asked: OperatorRequest, *, now: datetime) -> int:
    """End what its agent had; how many attempts were lost."""
    cause = f"host {host.host_id} was retired"
    session = hosts.current_session(connection, host.host_id)
    if session is None:
        mark_devices_absent(connection, host.host_id, now=now, cause=cause)
        return 0
    hosts.move_session(
        connection, session, SessionState.CLOSED, now=now, cause=cause, actor=f"user:{asked.by}"
    )
    return abandon_session(connection, session, now=now, cause=cause, code=RETIRED)


def _move(
    connection: Connection, host: Host, event: HostEvent, asked: OperatorRequest, *, now: datetime
) -> None:
    if not host_transitions.move_host(
        connection, host, event, now=now, actor=f"user:{asked.by}", cause=asked.reason
    ):
        verb = event.removeprefix("host_")
        raise Conflict(f"{host.host_id} is {host.state}: that cannot be {verb}", hint=_hint(host))


def _hint(host: Host) -> str:
    if host.state is HostState.RETIRED:
        return "its machine joins anew, with a token: farm token create"
    return _LOOK_AGAIN_HINT


def _change(connection: Connection, host: Host, said: str, *, changed: bool = True) -> HostChange:
    return HostChange(changed=changed, said=said, host=host_view(connection, host))
