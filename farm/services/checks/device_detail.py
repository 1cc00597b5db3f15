"""The details of one device, with how its last reference run compares."""

from sqlalchemy.engine import Connection

from farm.core.checks.reference_run import ReferenceAssessment, ReferenceRun, assess_reference_run
from farm.core.results.ceiling_history import RunCeilings, ceiling_history
from farm.services.checks.incidents import find_incident
from farm.services.devices.views import device_named, device_view
from farm.services.upkeep.device_actions import device_action_view
from farm.store.checks import reference_runs
from farm.store.devices import workload as device_workload
from farm.store.devices.devices import Device
from farm.store.devices.run_conditions import last_run_conditions
from farm.store.operations.event_log import last_events
from farm.store.upkeep import device_actions
from farm.store.upkeep.device_actions import find_settings_record
from farm.wire.documents.devices import DeviceDetail

RECENT_ATTEMPTS = 10
RECENT_EVENTS = 15
#: The attempts whose ceilings are summed up.
CEILING_RUNS = 100


def device_detail(connection: Connection, name: str) -> DeviceDetail:
    """Return a device with its facts, its queue, its open device actions and its past.

    Raises like `device_named`.
    """
    device = device_named(connection, name)
    conditions = last_run_conditions(connection, device.device_id, limit=CEILING_RUNS)
    waiting = device_actions.open_device_actions(connection, device_id=device.device_id)
    return DeviceDetail(
        **dict(device_view(connection, device)),
        facts=device.facts,
        queued_jobs=sum(device_workload.count_waiting(connection, [device.device_id]).values()),
        settings=find_settings_record(connection, device.device_id),
        reference_run=reference_run_text(connection, device),
        rebaselined_at=device.rebaselined_at,
        ceilings=ceiling_history(
            [
                RunCeilings(measured_at=run.measured_at, ceilings=run.ceilings)
                for run in conditions
                if run.ceilings is not None
            ]
        ),
        incident=find_incident(connection, device),
        device_actions=tuple(device_action_view(connection, device_action) for device_action in waiting),
        attempts=tuple(device_workload.last_attempts(connection, device.device_id, limit=RECENT_ATTEMPTS)),
        events=tuple(last_events(connection, "device", device.device_id, limit=RECENT_EVENTS)),
    )


def reference_run_text(connection: Connection, device: Device) -> str | None:
    """Return the time of a phone's last reference run, and how that compares; None before its first."""
    last = reference_runs.own_runs(connection, device.device_id, limit=1)
    if not last:
        return None
    run = last[0]
    return f"{run.verdict.replace('_', ' ')}: {_assess(connection, run).words}"


def _assess(connection: Connection, run: ReferenceRun) -> ReferenceAssessment:
    of_kind = reference_runs.runs_of_kind(
        connection, run.reference_key, run.program_digest, before=run.measured_at
    )
    return assess_reference_run(run, of_kind=of_kind, of_device=reference_runs.own_fit_runs(connection, run))
