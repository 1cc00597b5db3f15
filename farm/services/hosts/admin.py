"""Administer a host: whether it gets work, how much at once, whether it stays; end what it had."""

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.device import Health, Presence
from farm.core.devices.host_state import TARGET_BY_HOST_EVENT, HostEvent, HostState, SessionState
from farm.core.errors import Conflict
from farm.database.transaction import Tx
from farm.services.checks.incidents import end_incidents
from farm.services.hosts.clocks import end_clock_alarm
from farm.services.hosts.views import host_named, host_view
from farm.services.jobs.termination import lose_attempt
from farm.store.devices import devices
from farm.store.devices import reports as device_reports
from farm.store.devices import transitions as device_transitions
from farm.store.devices import workload as device_workload
from farm.store.hosts import hosts
from farm.store.hosts.hosts import Host, Session
from farm.store.jobs import attempts
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.hosts import HostChange, HostRetirementPlan, LimitRequest

_LOOK_AGAIN_HINT = "look again with `farm host list`, then decide"
#: Code of attempts whose host an operator retired.
RETIRED = "host.retired"


def change_host(tx: Tx, name: str, event: HostEvent, request: OperatorRequest) -> HostChange:
    """Drain a host, or give it work again; what runs there goes on in any case.

    Raises like `host_named`, and Conflict: it is in no state for that, or someone else was quicker.
    """
    host = host_named(tx.connection, name)
    if host.state is TARGET_BY_HOST_EVENT[event]:
        return _change(tx.connection, host, f"{host.host_id} is {host.state} already", changed=False)
    _move(tx, host, event, request)
    after = host_named(tx.connection, name)
    message = f"{after.host_id} is {after.state} now"
    runs = len(host_view(tx.connection, after).runs)
    if after.state is HostState.DRAINING:
        message += f"; {runs} of its runs go on to their ends" if runs else "; nothing runs there"
    return _change(tx.connection, after, message)


def limit_host(tx: Tx, name: str, request: LimitRequest) -> HostChange:
    """Set how many runs a host may have at once; those that are more already go on to their ends.

    Raises like `host_named`.
    """
    host = host_named(tx.connection, name)
    words = f"{request.max_runs or 'any number of'} {'run' if request.max_runs == 1 else 'runs'} at once"
    if host.max_runs == request.max_runs:
        return _change(tx.connection, host, f"{host.host_id} may have {words} already", changed=False)
    actor = f"user:{request.by}"
    hosts.put_max_runs(tx.by(actor), host, request.max_runs, reason=request.reason)
    return _change(tx.connection, host_named(tx.connection, name), f"{host.host_id} may have {words}")


def retirement_plan(connection: Connection, name: str) -> HostRetirementPlan:
    """Return what retiring a host would end. Raises like `host_named`."""
    host = host_named(connection, name)
    own = devices.list_devices(connection, host_id=host.host_id)
    waiting = device_workload.count_waiting(connection, [device.device_id for device in own])
    return HostRetirementPlan(
        host=host_view(connection, host),
        devices=tuple(device.device_id for device in own),
        queued_jobs=sum(waiting.values()),
        matrices=tuple(sorted(matrix_id for matrix_id in waiting if matrix_id is not None)),
    )


def retire_host(tx: Tx, name: str, request: OperatorRequest) -> HostChange:
    """Take a host out of the farm: its credential opens nothing from now on, and what it runs is lost.

    What is queued for its phones waits until they turn up at another host, or are retired, too.

    Raises like `host_named`, and Conflict: someone else was quicker.
    """
    host = host_named(tx.connection, name)
    if host.state is HostState.RETIRED:
        return _change(tx.connection, host, f"{host.host_id} is retired already", changed=False)
    _move(tx, host, HostEvent.RETIRED, request)
    lost = _close(tx, host, request)
    end_incidents(tx)
    end_clock_alarm(tx, host.host_id, cause="the host is retired")
    message = f"{host.host_id} is retired now; {lost} of its runs were lost, and its phones are absent"
    return _change(tx.connection, host_named(tx.connection, name), message)


def _close(tx: Tx, host: Host, request: OperatorRequest) -> int:
    """End what its agent had; how many attempts were lost."""
    cause = f"host {host.host_id} was retired"
    session = hosts.current_session(tx.connection, host.host_id)
    if session is None:
        mark_devices_absent(tx, host.host_id, cause=cause)
        return 0
    hosts.move_session(tx.by(f"user:{request.by}"), session, SessionState.CLOSED, cause=cause)
    return abandon_session(tx, session, cause=cause, code=RETIRED)


def _move(tx: Tx, host: Host, event: HostEvent, request: OperatorRequest) -> None:
    if not hosts.move_host(tx.by(f"user:{request.by}"), host, event, cause=request.reason):
        verb = event.removeprefix("host_")
        raise Conflict(f"{host.host_id} is {host.state}: that cannot be {verb}", hint=_hint(host))


def _hint(host: Host) -> str:
    if host.state is HostState.RETIRED:
        return "its machine joins again, with a token: farm token create"
    return _LOOK_AGAIN_HINT


def _change(connection: Connection, host: Host, message: str, *, changed: bool = True) -> HostChange:
    return HostChange(changed=changed, message=message, host=host_view(connection, host))


def abandon_session(tx: Tx, session: Session, *, cause: str, code: str) -> int:
    """End a session's attempts, and take its host's phones for absent; return how many attempts were lost.

    A phone that was at work then is trusted again once it is clean and has passed a check: no agent saw what
    became of it.
    """
    live = attempts.live_attempts(tx.connection, session.session_id)
    for attempt in live:
        lose_attempt(tx, attempt, cause=cause, code=code)
        trusted = [Health.GOOD]
        why = f"its last run was lost: {cause}"
        device_transitions.move_health(tx, attempt.device_id, sources=trusted, to=Health.UNKNOWN, cause=why)
    mark_devices_absent(tx, session.host_id, cause=cause)
    return len(live)


def mark_devices_absent(tx: Tx, host_id: HostId, *, cause: str) -> None:
    """Take all phones of a host for absent."""
    for device in devices.list_devices(tx.connection, host_id=host_id):
        if device.presence is not Presence.ABSENT:
            device_reports.mark_absent(tx, device.device_id, presence=device.presence, cause=cause)
