"""The files that a health check needs on the device."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import count, islice

from farm.core.base.ids import digest_of
from farm.core.runs.plan import PlanFile

_PAYLOAD_BYTES = 1024 * 1024


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
