"""Verified pushes: files go to an unused folder, and get their name once the device has their digests."""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from pathlib import Path
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.files.lru_order import touch_used
from agents.device.paths import cache_folder, incoming_folder
from agents.host.io_pool import run_in_io_pool
from farm.core.base.ids import Digest
from farm.core.base.units import size_text
from farm.core.errors import DeviceUnfit, HostError, PushCorrupted, PushFailed
from farm.core.runs.plan import PlanFile

#: How often a file is pushed before the device is blamed for its digest.
MAX_PUSHES = 3
SHELL_DEADLINE_S = 30.0
#: Slower than any device reads its flash or accepts a push over USB 2.
BYTES_PER_S = 4 * 1024 * 1024
#: The size of a batch: it fits a command line of adb, and limits what a lost device costs.
BATCH_FILES = 256
BATCH_BYTES = 64 * 1024 * 1024
#: The largest size of adb's older stat, with 32 bits.
LARGEST_V1_BYTES = 2**32 - 1
_ALL_OF_THEM = '"$@"'

LocalPath = Callable[[Digest], Awaitable[Path]]


class LocalCopyCorrupted(HostError):
    """A file on this host does not have the digest in its name."""

    code = "host.copy_damaged"
    default_hint = "check the disk that holds the agent's data folder"


async def push_verified(
    device: AdbDevice, work_root: str, files: Sequence[PlanFile], local_path: LocalPath, fence: int
) -> int:
    """Push files into the device's cache, each named only once the device has computed its digest.

    The incoming folder has to exist, and nobody else may be using it. Returns the bytes sent.

    Raises:
        DeviceUnfit, PushFailed, PushCorrupted, LocalCopyCorrupted, DeviceError: as `ensure_cached` does.
    """
    sent_bytes = 0
    for batch in _batches(files):
        sources = {file.digest: await local_path(file.digest) for file in batch}
        remaining = batch
        for _ in range(MAX_PUSHES):
            for file in remaining:
                sent_bytes += await _push(device, work_root, file, sources[file.digest])
            committed = await _commit_files(device, work_root, remaining, fence)
            remaining = [file for file in remaining if file.digest not in committed]
            if not remaining:
                break
        for file in remaining:
            raise await _corruption_error(device, file, sources[file.digest])
    return sent_bytes


def check_size(serial: str, file: PlanFile, features: Collection[str]) -> None:
    """Reject a file whose size the device could not report.

    Raises:
        DeviceUnfit: its adbd has no 64-bit sizes.
    """
    if file.size_bytes > LARGEST_V1_BYTES and "stat_v2" not in features:
        raise DeviceUnfit(
            f"{serial} accepts no file of {size_text(file.size_bytes)}: "
            "its adbd supports no sizes from 4 GiB on",
            hint="use a smaller file there, or a device whose adbd has stat_v2",
        )


def _batches(files: Sequence[PlanFile]) -> Iterator[list[PlanFile]]:
    """Yield the files that are verified together; a large one ends its batch."""
    batch: list[PlanFile] = []
    for file in files:
        batch.append(file)
        if len(batch) == BATCH_FILES or sum(pushed.size_bytes for pushed in batch) >= BATCH_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch


async def _push(device: AdbDevice, work_root: str, file: PlanFile, source: Path) -> int:
    if file.size_bytes > LARGEST_V1_BYTES:
        check_size(device.serial, file, await device.features(SHELL_DEADLINE_S))
    return await device.push(
        source,
        f"{incoming_folder(work_root)}/{file.digest}",
        mode=0o755 if file.executable else 0o644,
        deadline_s=SHELL_DEADLINE_S + file.size_bytes / BYTES_PER_S,
    )


async def _commit_files(device: AdbDevice, work_root: str, files: Sequence[PlanFile], fence: int) -> set[str]:
    """Name the pushed files whose digest is right, and return these; remove the others."""
    names = " ".join(file.digest for file in files)
    programs = " ".join(file.digest for file in files if file.executable)
    set_modes = f"chmod 644 {_ALL_OF_THEM}" + (f"; chmod 755 {programs}" if programs else "")
    commit = f"{touch_used(_ALL_OF_THEM, fence)} && mv -f {_ALL_OF_THEM} {quote(cache_folder(work_root))}"
    result = await device.shell(
        f"cd {quote(incoming_folder(work_root))} && set -- {names} && {{ {set_modes}; }}; "
        f"set -- $(sha256sum {_ALL_OF_THEM} | "
        'while read -r digest name; do [ "$digest" != "$name" ] || echo "$name"; done); '
        f'{{ [ $# = 0 ] || {{ {commit}; }}; }} && rm -f ./* && echo kept "$@"',
        deadline_s=SHELL_DEADLINE_S + sum(file.size_bytes for file in files) / BYTES_PER_S,
    )
    match result.stdout.decode(errors="replace").split():
        case ["kept", *digests]:
            return set(digests)
        case _:
            message = result.stderr.decode(errors="replace").strip()
            raise PushFailed(f"{device.serial} could not store the pushed files: {message}")


async def _corruption_error(
    device: AdbDevice, file: PlanFile, source: Path
) -> PushCorrupted | LocalCopyCorrupted:
    """Return the error of a file that never arrived intact: the local copy's or the device's."""
    if await run_in_io_pool(_local_digest, source) != file.digest:
        return LocalCopyCorrupted(f"{source} is not {file.digest}")
    return PushCorrupted(f"{device.serial} has other bytes than {file.digest} after {MAX_PUSHES} pushes")


def _local_digest(source: Path) -> str:
    with source.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
