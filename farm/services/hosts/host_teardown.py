"""What becomes of a host's runs and phones when nobody is there to look after them."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.device import Health, Presence
from farm.services.jobs.termination import lose_attempt
from farm.store.devices import devices
from farm.store.devices import reports as device_reports
from farm.store.devices import transitions as device_transitions
from farm.store.hosts.hosts import Session
from farm.store.jobs import attempts


def abandon_session(connection: Connection, session: Session, *, now: datetime, cause: str, code: str) -> int:
    """End what a session had in hand, and take its host's phones for absent; how many attempts were lost.

    A phone that was at work then is trusted again once it is clean and has passed a check: nobody saw what
    became of it.
    """
    live = attempts.live_attempts(connection, session.session_id)
    for attempt in live:
        lose_attempt(connection, attempt, now=now, cause=cause, code=code)
        trusted = [Health.GOOD]
        why = f"its last run was lost: {cause}"
        device_transitions.move_health(
            connection, attempt.device_id, sources=trusted, to=Health.UNKNOWN, now=now, cause=why
        )
    mark_devices_absent(connection, session.host_id, now=now, cause=cause)
    return len(live)


def mark_devices_absent(connection: Connection, host_id: HostId, *, now: datetime, cause: str) -> None:
    """Take all phones of a host for absent."""
    for device in devices.list_devices(connection, host_id=host_id):
        if device.presence is not Presence.ABSENT:
            device_reports.mark_absent(
                connection, device.device_id, presence=device.presence, now=now, cause=cause
            )
