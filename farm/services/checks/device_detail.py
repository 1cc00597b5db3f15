"""One phone with all there is to say about it."""

from sqlalchemy.engine import Connection

from farm.services.checks.incidents import find_incident
from farm.services.checks.reference_runs import reference_run_text
from farm.services.devices.views import device_named, device_view
from farm.services.upkeep.device_actions import device_action_view
from farm.store.devices import workload as device_workload
from farm.store.operations.event_history import last_events
from farm.store.upkeep import device_actions
from farm.store.upkeep.device_settings import find_settings_record
from farm.wire.documents.devices import DeviceDetail, EventView, RecentAttempt

RECENT_ATTEMPTS = 10
RECENT_EVENTS = 15


def device_detail(connection: Connection, name: str) -> DeviceDetail:
    """A phone with its facts, its queue, its errands and its past.

    Raises:
        NotFound: there is none of that name.
        InvalidInput: several might be meant.
    """
    device = device_named(connection, name)
    past = device_workload.last_attempts(connection, device.device_id, limit=RECENT_ATTEMPTS)
    story = last_events(connection, "device", device.device_id, limit=RECENT_EVENTS)
    waiting = device_actions.open_device_actions(connection, device_id=device.device_id)
    return DeviceDetail(
        **dict(device_view(connection, device)),
        facts=device.facts,
        queued_jobs=sum(device_workload.count_waiting(connection, [device.device_id]).values()),
        settings=find_settings_record(connection, device.device_id),
        reference_run=reference_run_text(connection, device),
        rebaselined_at=device.rebaselined_at,
        incident=find_incident(connection, device),
        device_actions=tuple(device_action_view(connection, device_action) for device_action in waiting),
        attempts=tuple(RecentAttempt.model_validate(each, from_attributes=True) for each in past),
        events=tuple(EventView.model_validate(each, from_attributes=True) for each in story),
    )
