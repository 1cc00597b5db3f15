"""What operators have agents do on phones: asked once, handed out when the phone is free, ended once."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.device import Presence
from farm.core.errors import Conflict, NotFound
from farm.core.upkeep.device_action import ErrandKind
from farm.database.notifications import concerns_devices
from farm.services.devices.views import device_named
from farm.services.upkeep.device_settings import check_undo, note_settings, put_back_of
from farm.store.devices import capacity, devices, pending_cleanups
from farm.store.devices.devices import Device
from farm.store.upkeep import device_actions
from farm.store.upkeep.device_actions import Errand, ErrandId
from farm.wire.agents import protocol
from farm.wire.documents.devices import Asked, ErrandView

#: A person waits for it; whoever comes back later asks again.
EXPIRES_AFTER = timedelta(minutes=10)
#: What changes a phone that somebody has.
_DISTURBING = (ErrandKind.CLEAN, ErrandKind.SET_UP, ErrandKind.UNDO_SETTINGS)


def ask_errand(
    connection: Connection, name: str, kind: ErrandKind, asked: Asked, *, now: datetime
) -> ErrandView:
    """Have something done on a phone; while that is still to be done, asking again changes nothing.

    Raises:
        NotFound: there is no such phone.
        InvalidInput: several might be meant.
        Conflict: somebody else holds the phone, and it would disturb them.
    """
    device = device_named(connection, name)
    if kind in _DISTURBING and device.held_by not in (None, asked.by):
        raise Conflict(
            f"{device.name} is held by {device.held_by}, whose work that would disturb",
            hint=f"ask {device.held_by}, or wait for the end of the hold",
        )
    if kind is ErrandKind.UNDO_SETTINGS:
        check_undo(connection, device)
    found = device_actions.find_open_errand(connection, device.device_id, kind)
    return errand_view(connection, found or _add(connection, device, kind, asked, now=now))


def get_errand(connection: Connection, errand_id: int) -> ErrandView:
    """An errand and what came of it.

    Raises:
        NotFound: there is none.
    """
    errand = device_actions.find_errand(connection, ErrandId(errand_id))
    if errand is None:
        raise NotFound(f"there is no errand {errand_id}")
    return errand_view(connection, errand)


def errands_of_host(connection: Connection, host_id: HostId) -> tuple[protocol.Errand, ...]:
    """What the host's agent is to do now, on phones where it disturbs nothing."""
    return tuple(
        protocol.Errand(
            errand_id=errand.errand_id,
            device_id=errand.device_id,
            kind=errand.kind,
            label=device.name,
            put_back=put_back_of(connection, errand),
        )
        for errand in device_actions.open_errands(connection, host_id=host_id)
        for device in devices.list_devices(connection, device_id=errand.device_id)
        if _obstacle(connection, device) is None
    )


def note_errands(
    connection: Connection, host_id: HostId, reports: Sequence[protocol.ErrandReport], *, now: datetime
) -> None:
    """Apply what an agent says of errands; one that is over, or not of its phones, stays as it is."""
    if not reports:
        return
    errand_by_id = {
        errand.errand_id: errand for errand in device_actions.open_errands(connection, host_id=host_id)
    }
    for report in reports:
        errand = errand_by_id.get(ErrandId(report.errand_id))
        if errand is not None:
            device_actions.end_errand(
                connection,
                errand,
                now=now,
                actor=f"agent:{host_id}",
                done=None if report.error is not None else report.done or "done",
                error=report.error,
                freed_bytes=report.freed_bytes,
            )
            note_settings(connection, errand, report.settings, now=now)


def expire_errands(connection: Connection, *, now: datetime, up_since: datetime) -> None:
    """End what nobody could see to in time; nothing while the farm has not been up for as long."""
    for errand in device_actions.open_errands(connection):
        if now - max(errand.asked_at, up_since) >= EXPIRES_AFTER:
            waited_for = _waiting_for(connection, errand) or "its agent did not report it"
            minutes = EXPIRES_AFTER.total_seconds() / 60
            error = f"not done within {minutes:.0f} min: {waited_for}"
            if device_actions.end_errand(connection, errand, now=now, actor="farm", error=error):
                # The phone may have its next job.
                concerns_devices(connection, [errand.device_id])


def errand_view(connection: Connection, errand: Errand) -> ErrandView:
    """An errand as people see it."""
    device = devices.find_device(connection, errand.device_id)
    return ErrandView(
        errand_id=errand.errand_id,
        device_id=errand.device_id,
        name=device.name if device else errand.device_id,
        kind=errand.kind,
        asked_by=errand.asked_by,
        asked_at=errand.asked_at,
        finished_at=errand.finished_at,
        done=errand.done,
        error=errand.error,
        freed_bytes=errand.freed_bytes,
        waiting_for=None if errand.finished_at else _waiting_for(connection, errand),
        expires_at=errand.asked_at + EXPIRES_AFTER,
    )


def _add(connection: Connection, device: Device, kind: ErrandKind, asked: Asked, *, now: datetime) -> Errand:
    with connection.begin_nested() as savepoint:
        try:
            return device_actions.add_errand(
                connection,
                device.device_id,
                kind,
                by=asked.by,
                now=now,
                actor=f"user:{asked.by}",
                reason=asked.reason,
            )
        except sa.exc.IntegrityError:
            savepoint.rollback()
    found = device_actions.find_open_errand(connection, device.device_id, kind)
    if found is None:
        raise Conflict(f"an errand of the kind {kind} has just ended on {device.name}", hint="ask again")
    return found


def _waiting_for(connection: Connection, errand: Errand) -> str | None:
    device = devices.find_device(connection, errand.device_id)
    return None if device is None else _obstacle(connection, device)


def _obstacle(connection: Connection, device: Device) -> str | None:
    """Why nothing may be done on a phone now, in words."""
    if not device.session_live:
        return f"the agent on {device.host_id} is not connected"
    if device.presence is not Presence.ONLINE:
        return f"the phone is {device.presence}"
    if device.job_id is not None:
        return f"job {device.job_id} runs on it"
    if device.cleaned_fence < device.fence:
        return "its last run is being cleaned up"
    busy_cpus = capacity.busy_cpus(connection) | pending_cleanups.uncleaned_cpus(connection)
    return "another phone on the same CPU is busy" if device.cpu_domain in busy_cpus else None
