"""The files that come with the farm: programs that it registers whenever it starts, and those of checks."""

from datetime import datetime
from functools import cache
from importlib.resources import files

from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs
from farm.core.base.ids import Digest, digest_of
from farm.core.programs.bundle import Bundle, single_file
from farm.core.runs.plan import PlanFile
from farm.database.engine import Database
from farm.database.transaction import Tx, bind_tx
from farm.store.files.artifacts import put_artifact, stored_artifacts
from farm.store.files.programs import list_programs, program_digest, put_program

#: Runs on phones that offer benchfarm's own interpreter: the virtual ones.
_BUILTIN_HARNESS, _BUILTIN_ABI = "speed_benchmark_torch", "x86_64"
_PAYLOAD_BYTES = 1024 * 1024


def register_builtin_programs(database: Database, blobs: DiskBlobs, *, now: datetime) -> None:
    """Put the farm's own programs into the blob store and register them; again writes nothing."""
    contents = _contents()
    for content in contents:
        if blobs.size_bytes(digest_of(content)) is None or blobs.is_damaged(digest_of(content)):
            blobs.put([content], digest_of(content))
    if not database.read(_is_registered):
        database.write(bind_tx(_register, now=now), contents)


def _is_registered(connection: Connection) -> bool:
    """Tell whether there is nothing to register; a farm has to start on a full disk."""
    stored = {artifact.digest for artifact in stored_artifacts(connection, builtin_digests())}
    return stored == builtin_digests() and _has_builtin_program(connection)


def _has_builtin_program(connection: Connection) -> bool:
    registered = {program.digest for program in list_programs(connection, harness=_BUILTIN_HARNESS)}
    return program_digest(_builtin_bundle(), None) in registered


@cache
def builtin_digests() -> frozenset[Digest]:
    """Return the digests of the files that come with the farm, and that it needs itself."""
    return frozenset(map(digest_of, _contents()))


def _contents() -> list[bytes]:
    return [_builtin_program(), check_program(), check_payload()]


def _builtin_program() -> bytes:
    return files("harnesses").joinpath(_BUILTIN_HARNESS).read_bytes()


def _builtin_bundle() -> Bundle:
    program = _builtin_program()
    return single_file(_BUILTIN_HARNESS, digest_of(program), len(program))


def _register(tx: Tx, contents: list[bytes]) -> None:
    for content in contents:
        put_artifact(tx, digest_of(content), len(content))
    # A program that a user registered since the last start stays in use.
    if not _has_builtin_program(tx.connection):
        put_program(tx, harness=_BUILTIN_HARNESS, abi=_BUILTIN_ABI, bundle=_builtin_bundle())


def check_program() -> bytes:
    """Return the script that a check runs on the device."""
    return files("harnesses").joinpath("device_check").read_bytes()


@cache
def check_payload() -> bytes:
    """Return a megabyte that cannot be compressed: a push that damages one bit is detected.

    Its 32,768 digests take a tenth of a second, which every farm of a test would spend at its start.
    """
    blocks = (digest_of(b"benchfarm check payload %d" % number) for number in range(_PAYLOAD_BYTES // 32))
    return b"".join(map(bytes.fromhex, blocks))


@cache
def check_files() -> tuple[PlanFile, PlanFile]:
    """Return script and payload of a check, as the plan names them."""
    program, payload = check_program(), check_payload()
    return (
        PlanFile(name="program", digest=digest_of(program), size_bytes=len(program), executable=True),
        PlanFile(name="payload", digest=digest_of(payload), size_bytes=len(payload)),
    )
