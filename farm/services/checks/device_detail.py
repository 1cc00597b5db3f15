"""One phone with all there is to say about it."""

from sqlalchemy.engine import Connection

from farm.services.checks.incidents import find_incident
from farm.services.checks.reference_runs import golden_words
from farm.services.devices.views import device_named, device_view
from farm.services.upkeep.device_actions import errand_view
from farm.store.devices import workload
from farm.store.operations.event_history import last_events
from farm.store.upkeep import device_actions
from farm.store.upkeep.device_settings import find_shelf_record
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
    past = workload.last_attempts(connection, device.device_id, limit=RECENT_ATTEMPTS)
    story = last_events(connection, "device", device.device_id, limit=RECENT_EVENTS)
    waiting = device_actions.open_errands(connection, device_id=device.device_id)
    return DeviceDetail(
        **dict(device_view(connection, device)),
        facts=device.facts,
        queued_jobs=sum(workload.count_waiting(connection, [device.device_id]).values()),
        settings=find_shelf_record(connection, device.device_id),
        golden_run=golden_words(connection, device),
        level_accepted_at=device.level_accepted_at,
        incident=find_incident(connection, device),
        errands=tuple(errand_view(connection, errand) for errand in waiting),
        attempts=tuple(RecentAttempt.model_validate(each, from_attributes=True) for each in past),
        events=tuple(EventView.model_validate(each, from_attributes=True) for each in story),
    )
