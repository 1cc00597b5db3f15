"""The loop call of an agent: apply what it says, and tell it what it owns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId, SessionId
from farm.core.devices.host_state import SessionState
from farm.core.errors import Forbidden, SessionFenced
from farm.core.errors.requests import CREDENTIAL_IN_USE_HINT
from farm.services.agents.exchange.apply import apply
from farm.services.agents.exchange.effects import AdvanceAttempt, Effect, RecordSeen, RecordWaiting
from farm.services.agents.exchange.reconcile import facts_wanted, reconcile, reconcile_attempts
from farm.services.agents.exchange.snapshot import load
from farm.store.devices.devices import Device
from farm.store.hosts import hosts
from farm.store.hosts.hosts import Session
from farm.store.operations import database_epochs
from farm.wire.agents.protocol import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """An exchange that was applied, or whose session was looked at."""

    session: Session
    #: No exchange with a higher number was applied.
    is_latest: bool
    #: Devices whose facts are wanted.
    facts_wanted: Sequence[DeviceId] = ()
    #: All devices of the host; None where they have to be read again.
    devices: Sequence[Device] | None = None


def exchange(
    connection: Connection, host_id: HostId, session_id: SessionId, said: Exchange, *, now: datetime
) -> Applied:
    """Apply what an agent says; an exchange older than one that was applied changes nothing.

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: the session is not the host's current one, or the database was restored since.
    """
    session = current_session(connection, host_id, session_id)
    _check_epoch(connection, said)
    if not hosts.record_heartbeat(connection, session_id, seq=said.seq, now=now):
        return Applied(session=session, is_latest=session.exchange_seq == said.seq)
    if session.state is SessionState.SILENT:
        hosts.move_session(connection, session, SessionState.LIVE, now=now, cause="its agent is back")
    snapshot = load(connection, session, said, now=now)
    effects = reconcile_attempts(snapshot, said)
    apply(connection, host_id, effects, now=now)
    if not _leave_devices(effects, host_id):
        snapshot = load(connection, session, said, now=now)
    effects = reconcile(snapshot, said, now=now)
    apply(connection, host_id, effects, now=now)
    return Applied(
        session=session,
        is_latest=True,
        facts_wanted=facts_wanted(effects, said),
        devices=snapshot.devices if _leave_devices(effects, host_id) else None,
    )


def current_session(connection: Connection, host_id: HostId, session_id: SessionId) -> Session:
    """Return a session of a host that is live, or silent.

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: the session is not the host's current one.
    """
    session = hosts.find_session(connection, session_id)
    if session is None:
        raise SessionFenced(f"host {host_id} has no session {session_id}")
    if session.host_id != host_id:
        raise Forbidden(f"session {session_id} is not of host {host_id}", hint=CREDENTIAL_IN_USE_HINT)
    if session.state is SessionState.CLOSED:
        raise SessionFenced(
            f"session {session_id} is closed: a newer one of {host_id} was opened",
            hint="when nobody restarted the agent, another one has its credential: a copied folder, say",
        )
    if session.state not in (SessionState.LIVE, SessionState.SILENT):
        raise SessionFenced(f"session {session_id} is {session.state}")
    return session


def _check_epoch(connection: Connection, said: Exchange) -> None:
    epoch = database_epochs.current_epoch(connection)
    if said.database_epoch not in ("", epoch.epoch):
        raise SessionFenced(f"the farm's database was {epoch.cause}")


def _leave_devices(effects: Sequence[Effect], host_id: HostId) -> bool:
    """Return whether effects leave all that was read of devices as it was, but for when they were seen."""
    return all(
        all(seen.is_unchanged(host_id) for seen in effect.seen)
        if isinstance(effect, RecordSeen)
        else isinstance(effect, AdvanceAttempt | RecordWaiting)
        for effect in effects
    )
