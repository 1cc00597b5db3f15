"""Heartbeats of idle agents: recorded many at a time, in one transaction.

One is idle whose report of its devices repeats what the farm knows, and asks for nothing.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId, SessionId
from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import HostState, SessionState
from farm.database.transaction import Tx
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.hosts import hosts
from farm.store.operations import database_epochs, heartbeats
from farm.store.operations.heartbeats import HeartbeatState
from farm.wire.agents.protocol import DeviceReport, Exchange


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExchangeCall:
    """An exchange that may turn out to have nothing in it. One that is made twice is two."""

    host_id: HostId
    session_id: SessionId
    #: Of what was shown with it.
    credential_hash: str
    exchange: Exchange

    @property
    def has_only_devices(self) -> bool:
        """Tell whether it reports no more than devices."""
        request = self.exchange
        is_at_work = request.attempts or request.device_actions or request.device_actions_in_progress
        is_unwell = request.pressure or request.full_controllers or request.damaged_files
        return not (is_at_work or is_unwell)


def record_idle_heartbeats(tx: Tx, calls: Sequence[ExchangeCall]) -> frozenset[ExchangeCall]:
    """Apply those calls to which the answer is that there is nothing; the others are as if never made.

    It is decided and noted in one transaction, so that the result is the same as that of `exchange`.
    """
    quiet = _select_idle(tx.connection, calls, lambda call, state: state.exchange_seq < call.exchange.seq)
    hosts.record_heartbeats(tx, {call.session_id: call.exchange.seq for call in quiet})
    heartbeats.record_devices_seen(tx, {call.host_id for call in quiet if call.exchange.devices})
    return quiet


def find_still_idle(connection: Connection, calls: Sequence[ExchangeCall]) -> frozenset[ExchangeCall]:
    """Return the applied calls to which the answer is still that there is nothing to do."""
    return _select_idle(connection, calls, lambda call, state: state.exchange_seq == call.exchange.seq)


def _select_idle(
    connection: Connection,
    calls: Collection[ExchangeCall],
    counts: Callable[[ExchangeCall, HeartbeatState], bool],
) -> frozenset[ExchangeCall]:
    state_by_session = heartbeats.heartbeat_states(connection, {call.session_id for call in calls})
    epoch = database_epochs.current_epoch(connection).epoch
    idle = [
        call
        for call in _latest_by_session(calls)
        if call.has_only_devices
        and call.exchange.database_epoch in ("", epoch)
        and (state := state_by_session.get(call.session_id)) is not None
        and _is_idle(state, call)
        and counts(call, state)
    ]
    devices_by_host = devices.devices_of_hosts(connection, {call.host_id for call in idle})
    return frozenset(
        call for call in idle if is_inventory_unchanged(devices_by_host[call.host_id], call.exchange.devices)
    )


def _is_idle(state: HeartbeatState, call: ExchangeCall) -> bool:
    return (
        (state.host_id, state.credential_hash) == (call.host_id, call.credential_hash)
        and state.host_state is not HostState.RETIRED
        and state.state is SessionState.LIVE
        and not (state.has_jobs or state.has_incident)
    )


def _latest_by_session(calls: Collection[ExchangeCall]) -> Collection[ExchangeCall]:
    """Return the latest call of each session; the ones before it are answered only."""
    return {call.session_id: call for call in sorted(calls, key=lambda call: call.exchange.seq)}.values()


def is_report_unchanged(device: Device, report: DeviceReport) -> bool:
    """Tell whether a report of a phone by its own host changes nothing but when it was seen."""
    return (
        (device.presence, device.serial, device.detail) == (report.presence, report.serial, report.detail)
        and report.facts is None
        and report.condition in (None, device.condition)
        and report.recovery == device.recovery
        and not (report.recovery is not None and report.recovery.needs_approval)
        and not report.claimants
        and report.cleaned_fence <= device.cleaned_fence
        and report.known_fence <= device.fence
        and not _needs_attention(device)
    )


def is_device_idle(device: Device) -> bool:
    """Tell whether nothing is under way on a phone, nor to be done there but jobs."""
    return device.job_id is None and not device.has_device_action and device.cleaned_fence == device.fence


def is_inventory_unchanged(devices: Sequence[Device], reports: Sequence[DeviceReport]) -> bool:
    """Tell whether a complete list of a host's phones changes nothing, and all of them are at rest."""
    report_by_id = {report.device_id: report for report in reports}
    here = {device.device_id: device for device in devices}
    return report_by_id.keys() <= here.keys() and all(
        is_device_idle(device)
        and (
            is_report_unchanged(device, report_by_id[device.device_id])
            if device.device_id in report_by_id
            else device.presence is Presence.ABSENT
        )
        for device in devices
    )


def _needs_attention(device: Device) -> bool:
    """Tell whether time alone makes something due: a check, or the end of trust in a phone."""
    if device.presence is not Presence.ONLINE:
        return False
    may_be_checked = device.admin is Admin.ACTIVE and device.health is not Health.GOOD
    return may_be_checked or (device.detail is not None and device.health is not Health.BAD)
