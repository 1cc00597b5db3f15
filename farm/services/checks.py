"""Health checks: the files they need, and what their outcome does to a phone."""

from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from itertools import count, islice

from sqlalchemy.engine import Connection

from farm.core.device import Health
from farm.core.errors import Blame
from farm.core.health import is_suspicious
from farm.core.ids import DeviceId, digest_of
from farm.core.measurement import Outcome
from farm.core.plan import PlanFile
from farm.store import attempts, devices, jobs

_PAYLOAD_BYTES = 1024 * 1024
#: How many of a device's last attempts are looked at.
RECENT_ATTEMPTS = 5


def check_program() -> bytes:
    """The script that a check runs on the phone."""
    return files("harnesses").joinpath("device_check").read_bytes()


def check_payload() -> bytes:
    """A megabyte that no compression shortens: a push that damages one bit shows."""
    return b"".join(islice(_noise(), _PAYLOAD_BYTES // 32))


def _noise() -> Iterator[bytes]:
    return (bytes.fromhex(digest_of(b"benchfarm check payload %d" % number)) for number in count())


def check_files(connection: Connection) -> tuple[PlanFile, PlanFile]:
    """Script and payload of a check, as the plan names them."""
    program, payload = check_program(), check_payload()
    return (
        PlanFile(name="program", digest=digest_of(program), size_bytes=len(program), executable=True),
        PlanFile(name="payload", digest=digest_of(payload), size_bytes=len(payload)),
    )


def judge_check(
    connection: Connection, device_id: DeviceId, outcome: Outcome, message: str, *, now: datetime
) -> None:
    """Turn the end of a check into the phone's health."""
    to = Health.GOOD if outcome is Outcome.SUCCEEDED else Health.BAD
    devices.move_health(connection, device_id, sources=list(Health), to=to, now=now, cause=message)


def watch_health(connection: Connection, device_id: DeviceId, *, now: datetime) -> None:
    """After an attempt: a good phone that was to blame too often becomes suspect, and is checked."""
    blames = attempts.recent_blames(connection, device_id, RECENT_ATTEMPTS)
    if not is_suspicious(blames):
        return
    failures = blames.count(Blame.DEVICE)
    cause = f"{failures} of its last {len(blames)} attempts failed through the phone"
    if devices.move_health(
        connection, device_id, sources=[Health.GOOD], to=Health.SUSPECT, now=now, cause=cause
    ):
        jobs.add_check(connection, device_id, now=now, cause=cause)
