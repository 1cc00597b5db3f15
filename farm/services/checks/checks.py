"""Health checks: the files they need, and what their outcome does to a phone."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import count, islice

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, digest_of
from farm.core.checks.check_schedule import is_due
from farm.core.checks.health import is_boot_loop, is_suspicious
from farm.core.devices.device import Admin, Health, Presence
from farm.core.errors import Blame
from farm.core.jobs.poison_job import DEVICE_GONE_CODES, POISON_JOB
from farm.core.runs.measurement import Outcome
from farm.core.runs.plan import PlanFile
from farm.services.checks.incidents import exclude_host_faults, find_incident
from farm.services.checks.reference_runs import record_reference_run_event, reference_state_of_check
from farm.store.checks import failures as device_failures
from farm.store.checks.outcomes import last_check_id, last_checks, outcomes_since_check
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.store.devices.devices import Device
from farm.store.jobs import jobs

_PAYLOAD_BYTES = 1024 * 1024
#: How many of a device's last attempts are looked at.
RECENT_ATTEMPTS = 5
#: Starts of a phone that are longer ago are no part of a boot loop of today.
_BOOTS_WITHIN = timedelta(hours=1)


def check_program() -> bytes:
    """The script that a check runs on the phone."""
    return files("harnesses").joinpath("device_check").read_bytes()


def check_payload() -> bytes:
    """A megabyte that no compression shortens: a push that damages one bit shows."""
    return b"".join(islice(_incompressible_blocks(), _PAYLOAD_BYTES // 32))


def _incompressible_blocks() -> Iterator[bytes]:
    return (bytes.fromhex(digest_of(b"benchfarm check payload %d" % number)) for number in count())


@cache
def check_files() -> tuple[PlanFile, PlanFile]:
    """Script and payload of a check, as the plan names them."""
    program, payload = check_program(), check_payload()
    return (
        PlanFile(name="program", digest=digest_of(program), size_bytes=len(program), executable=True),
        PlanFile(name="payload", digest=digest_of(payload), size_bytes=len(payload)),
    )


def apply_check_outcome(
    connection: Connection,
    device_id: DeviceId,
    outcome: Outcome,
    blame: Blame | None,
    *,
    now: datetime,
    cause: str,
) -> None:
    """Turn the end of a check into the phone's health; one that host or farm spoiled says nothing of it."""
    if outcome is Outcome.INCONCLUSIVE and blame is not Blame.DEVICE:
        return
    passed = outcome is Outcome.SUCCEEDED
    to, cause = (Health.GOOD, "it passed its check") if passed else (Health.BAD, cause)
    job_id = last_check_id(connection, device_id)
    standing = None if job_id is None else reference_state_of_check(connection, job_id)
    if standing is not None:
        to, cause = standing.health, f"{cause}: {standing.words}" if passed else cause
        record_reference_run_event(connection, device_id, standing, now=now)
    device_transitions.move_health(connection, device_id, sources=list(Health), to=to, now=now, cause=cause)


def queue_check_if_needed(connection: Connection, device: Device, *, arrived: bool, now: datetime) -> None:
    """Queue a check of an online phone whose health only a check can tell.

    A phone that failed its check is checked again when it comes back: somebody may have seen to it. Others
    are checked again some time after a check that ended without an answer; the more in a row, the later.

    Args:
        device: the phone, online now.
        arrived: it was not online before.
    """
    if device.admin is not Admin.ACTIVE or device.health is Health.GOOD:
        return
    if is_due(device.health, last_checks(connection, device.device_id), arrived=arrived, now=now):
        jobs.add_check(connection, device.device_id, now=now, cause=f"its health is {device.health}")


def queue_check_after_loss(
    connection: Connection, device_id: DeviceId, code: str | None, *, now: datetime
) -> None:
    """Have a phone checked before it gets its next job, when its last one lost it."""
    if code in DEVICE_GONE_CODES and devices.get_device(connection, device_id).admin is Admin.ACTIVE:
        jobs.add_check(connection, device_id, now=now, cause=f"it went away during a job: {code}")


def suspect_failing_device(connection: Connection, device_id: DeviceId, *, now: datetime) -> None:
    """After an attempt: a good phone that was to blame too often since its check is suspect and checked."""
    found = outcomes_since_check(connection, device_id, RECENT_ATTEMPTS)
    own = exclude_host_faults(connection, device_id, found)
    # What makes other phones go away, too, was not this one's doing.
    blames = [ending.blame for ending in own if ending.job_code != POISON_JOB]
    if not is_suspicious(blames):
        return
    failures = blames.count(Blame.DEVICE)
    cause = f"{failures} of its last {len(blames)} attempts failed through the phone"
    if device_transitions.move_health(
        connection, device_id, sources=[Health.GOOD], to=Health.SUSPECT, now=now, cause=cause
    ):
        jobs.add_check(connection, device_id, now=now, cause=cause)


def detect_boot_loop(connection: Connection, device: Device, presence: Presence, *, now: datetime) -> None:
    """A phone that starts again and again, and never comes up, is bad; once it does, it is checked.

    Call it when what an agent sees was noted; `device` is as it was before.
    """
    if presence is not Presence.BOOTING or device.presence is Presence.BOOTING:
        return
    began_at = device_failures.boots_since(connection, device.device_id, now - _BOOTS_WITHIN)
    if not is_boot_loop(began_at, now=now) or find_incident(connection, device) is not None:
        return
    lasts_min = (now - began_at[0]).total_seconds() / 60
    device_transitions.move_health(
        connection,
        device.device_id,
        sources=[Health.UNKNOWN, Health.GOOD, Health.SUSPECT],
        to=Health.BAD,
        now=now,
        cause=f"it began to start {len(began_at)} times within {lasts_min:.0f} min and never came up",
    )


def apply_failed_cleanup(connection: Connection, device_id: DeviceId, cause: str, *, now: datetime) -> None:
    """A phone on which something of a run withstands its agent is bad, until it comes back or is checked."""
    device_transitions.move_health(
        connection,
        device_id,
        sources=[Health.UNKNOWN, Health.GOOD, Health.SUSPECT],
        to=Health.BAD,
        now=now,
        cause=cause,
    )
