"""Calls of agents that have nothing to say and nothing to do: noted many at a time, in one transaction."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId, SessionId
from farm.core.devices.host_state import HostState, SessionState
from farm.services.agents.unchanged_report import is_inventory_unchanged
from farm.store.devices import devices
from farm.store.hosts import hosts
from farm.store.operations import database_epochs, heartbeats
from farm.store.operations.heartbeats import HeartbeatState
from farm.wire.agents.protocol import Exchange


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExchangeCall:
    """An exchange that may turn out to have nothing in it. One that is made twice is two."""

    host_id: HostId
    session_id: SessionId
    #: Of what was shown with it.
    credential_hash: str
    said: Exchange

    @property
    def has_only_devices(self) -> bool:
        """Whether it tells of no more than phones."""
        said = self.said
        is_at_work = said.attempts or said.device_actions or said.device_actions_in_progress
        return not (is_at_work or said.full_controllers) and said.pressure is None


def record_idle_heartbeats(
    connection: Connection, calls: Sequence[ExchangeCall], *, now: datetime
) -> frozenset[ExchangeCall]:
    """Apply those calls to which the answer is that there is nothing; the others are as if never made.

    It is decided and noted in one transaction, so that what `exchange` would have come to is all the same.
    """
    quiet = _select_idle(connection, calls, lambda call, standing: standing.exchange_seq < call.said.seq)
    hosts.record_heartbeats(connection, {call.session_id: call.said.seq for call in quiet}, now=now)
    heartbeats.record_devices_seen(connection, {call.host_id for call in quiet if call.said.devices}, now=now)
    return quiet


def find_still_idle(connection: Connection, calls: Sequence[ExchangeCall]) -> frozenset[ExchangeCall]:
    """Those of calls that were applied to which the answer is still that there is nothing."""
    return _select_idle(connection, calls, lambda call, standing: standing.exchange_seq == call.said.seq)


def _select_idle(
    connection: Connection,
    calls: Collection[ExchangeCall],
    counts: Callable[[ExchangeCall, HeartbeatState], bool],
) -> frozenset[ExchangeCall]:
    found = heartbeats.heartbeat_states(connection, {call.session_id for call in calls})
    epoch = database_epochs.current_epoch(connection).epoch
    idle = [
        call
        for call in _latest_by_session(calls)
        if call.has_only_devices
        and call.said.database_epoch in ("", epoch)
        and (standing := found.get(call.session_id)) is not None
        and _is_idle(standing, call)
        and counts(call, standing)
    ]
    known = devices.devices_of_hosts(connection, {call.host_id for call in idle})
    return frozenset(call for call in idle if is_inventory_unchanged(known[call.host_id], call.said.devices))


def _is_idle(standing: HeartbeatState, call: ExchangeCall) -> bool:
    return (
        (standing.host_id, standing.credential_hash) == (call.host_id, call.credential_hash)
        and standing.host_state is not HostState.RETIRED
        and standing.state is SessionState.LIVE
        and not (standing.has_jobs or standing.has_incident)
    )


def _latest_by_session(calls: Collection[ExchangeCall]) -> Collection[ExchangeCall]:
    """Of each session the call that counts; what came before it is no more than answered."""
    return {call.session_id: call for call in sorted(calls, key=lambda call: call.said.seq)}.values()
