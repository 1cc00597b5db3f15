"""Health checks: the files they need, and when a phone needs one."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import count, islice

from sqlalchemy.engine import Connection

from farm.core.base.ids import digest_of
from farm.core.checks.check_schedule import is_due
from farm.core.devices.device import Admin, Health
from farm.core.runs.plan import PlanFile
from farm.store.checks.outcomes import last_checks
from farm.store.devices.devices import Device
from farm.store.jobs import jobs

_PAYLOAD_BYTES = 1024 * 1024
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
