"""Registers the programs that come with the farm, whenever it starts."""

from datetime import datetime
from functools import cache
from importlib.resources import files

from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs
from farm.core.base.ids import Digest, digest_of
from farm.core.programs.bundle import single_file
from farm.database.engine import Database
from farm.services.files.check_files import check_payload, check_program
from farm.services.files.registration import register_artifact
from farm.store.files.programs import list_programs, program_digest, put_program

#: Runs on phones that offer benchfarm's own interpreter: the virtual ones.
_BUILTIN_HARNESS, _BUILTIN_ABI = "speed_benchmark_torch", "x86_64"


def register_builtin_programs(database: Database, blobs: DiskBlobs, *, now: datetime) -> None:
    """Put the farm's own programs into the blob store and register them; again changes nothing."""
    contents = _contents()
    for content in contents:
        if blobs.size_bytes(digest_of(content)) is None:
            blobs.put([content], digest_of(content))
    database.write(_register, contents, now=now)


@cache
def builtin_digests() -> frozenset[Digest]:
    """The files that the farm brings with it, and needs itself."""
    return frozenset(map(digest_of, _contents()))


def _contents() -> list[bytes]:
    return [_builtin_program(), check_program(), check_payload()]


def _builtin_program() -> bytes:
    return files("harnesses").joinpath(_BUILTIN_HARNESS).read_bytes()


def _register(connection: Connection, contents: list[bytes], *, now: datetime) -> None:
    for content in contents:
        register_artifact(connection, digest_of(content), len(content), now=now)
    program = _builtin_program()
    bundle = single_file(_BUILTIN_HARNESS, digest_of(program), len(program))
    known = {each.digest for each in list_programs(connection, harness=_BUILTIN_HARNESS)}
    # What a user registered since the last start stays in use.
    if program_digest(bundle, None) not in known:
        put_program(connection, harness=_BUILTIN_HARNESS, abi=_BUILTIN_ABI, bundle=bundle, now=now)
