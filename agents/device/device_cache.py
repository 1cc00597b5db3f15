"""The device's cache: files named by their digests, which are computed on the device.

A pushed file goes to an unused folder, and gets its name once the device has its digest.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.conditions import STATE_FORMAT, state_by_digest
from agents.device.paths import cache_folder, cache_path, incoming_folder
from agents.host.atomic_file import file_digest, run_in_io_pool
from farm.core.base.ids import Digest
from farm.core.base.units import size_text
from farm.core.errors import DeviceUnfit, HostError, PushCorrupted, PushFailed
from farm.core.runs.plan import PlanFile
from farm.phone.adb.shell_output import digest_by_path

#: Attempts to push a file before the device is blamed for its digest.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheResult:
    """The paths of a plan's files on the device, and the bytes that were pushed."""

    path_by_name: dict[str, str]
    #: Bytes sent, repeats included; 0 when all files were present.
    pushed_bytes: int
    #: The state of the files that needed no push, when their digests were computed.
    state_by_digest: Mapping[Digest, str]


async def ensure_cached(
    device: AdbDevice, files: Sequence[PlanFile], local_path: LocalPath, *, fence: int = 0
) -> CacheResult:
    """Ensure that every file is in the device's cache with the right digest, computed on the device now.

    Call it once at a time per device: partial pushes of an earlier call are removed.

    Args:
        files: as the plan lists them.
        local_path: gives the local copy of a file that is not on the phone yet.
        fence: of the run that uses the files; evictions remove the files of the oldest run first.

    Raises:
        DeviceUnfit: the device's adbd cannot tell the size of a file from 4 GiB on.
        PushFailed: the device accepted no file, or has no space for one.
        PushCorrupted: the file arrived with another digest, three times.
        LocalCopyCorrupted: the local copy is corrupt; the caller may replace it and try again.
        DeviceError: the device went away, or was too slow.
    """
    valid = await _verify_cached(device, files, fence) if files else {}
    # Of equal files the executable one comes last, and wins.
    missing = sorted((file for file in files if file.digest not in valid), key=lambda file: file.executable)
    unique = list({file.digest: file for file in missing}.values())
    pushed_bytes = await push_verified(device, unique, local_path, fence)
    return CacheResult(
        path_by_name={file.name: cache_path(device.work_root, file.digest) for file in files},
        pushed_bytes=pushed_bytes,
        state_by_digest=valid,
    )


async def _verify_cached(device: AdbDevice, files: Sequence[PlanFile], fence: int) -> dict[Digest, str]:
    """Return the files that are present and valid, with their state; remove partial pushes. One call."""
    names = " ".join(sorted({file.digest for file in files}))
    programs = " ".join(sorted({file.digest for file in files if file.executable}))
    folder, incoming = quote(cache_folder(device.work_root)), quote(incoming_folder(device.work_root))
    command = f"mkdir -p {folder} {incoming} && rm -f {incoming}/* && cd {folder} && "
    command += f"{{ chmod 755 {programs}; }} 2>/dev/null; " if programs else ""
    # Named once: repeating hundreds of digests would exceed adb's limit of a command line.
    all_of_them = '"$@"'
    # The state is read before the digests: a change during or after the read shows.
    checks = f"{touch_used(all_of_them, fence)}; stat -c '{STATE_FORMAT}' {all_of_them}; "
    checks += f"sha256sum {all_of_them}"
    result = await device.shell(
        f"{command}set -- {names}; {{ {checks}; }} 2>/dev/null; true",
        deadline_s=SHELL_DEADLINE_S + sum(file.size_bytes for file in files) / BYTES_PER_S,
    )
    output = result.text
    digests, states = digest_by_path(output), state_by_digest(output)
    return {
        file.digest: states.get(file.digest, "") for file in files if digests.get(file.digest) == file.digest
    }


#: The order of use is that of mtimes: a file's is the fence of its last run, in seconds from 1970. No clock
#: orders the files: a device's may jump, and every host has another; fences only rise, whichever host the
#: device is attached to. No fence gets this far: a later time comes from a clock (2001 or later), so that the
#: last run is unknown.
_CLOCK_TIMES_S = 10**9


def touch_used(names: str, fence: int) -> str:
    """Return a shell command that marks files of the current folder, if present, as used by a run.

    A `touch` without -t leaves the device's time: such files count as used before all others.
    """
    time = datetime.fromtimestamp(fence, UTC).strftime("%Y%m%d%H%M.%S")
    return f"{{ TZ=UTC0 touch -c -t {time} {names} || touch -c {names}; }}"


def lru_key(modified_s: int) -> tuple[int, int]:
    """Return the sort key of a file by its mtime: least recently used first."""
    return (modified_s if modified_s < _CLOCK_TIMES_S else 0, modified_s)


class LocalCopyCorrupted(HostError):
    """A file on this host does not have the digest in its name."""

    code = "host.copy_damaged"
    default_hint = "check the disk that holds the agent's data folder"


async def push_verified(
    device: AdbDevice, files: Sequence[PlanFile], local_path: LocalPath, fence: int
) -> int:
    """Push files into the device's cache, each named only once the device has computed its digest.

    The incoming folder has to exist, and no other process may use it. Returns the bytes sent.

    Raises:
        DeviceUnfit, PushFailed, PushCorrupted, LocalCopyCorrupted, DeviceError: as `ensure_cached` does.
    """
    sent_bytes = 0
    for batch in _batches(files):
        sources = {file.digest: await local_path(file.digest) for file in batch}
        remaining = batch
        for _ in range(MAX_PUSHES):
            for file in remaining:
                sent_bytes += await _push(device, file, sources[file.digest])
            committed = await _commit_files(device, remaining, fence)
            remaining = [file for file in remaining if file.digest not in committed]
            if not remaining:
                break
        for file in remaining:
            # It never arrived intact: the local copy is to blame, or the device.
            if await run_in_io_pool(file_digest, sources[file.digest]) != file.digest:
                raise LocalCopyCorrupted(f"{sources[file.digest]} is not {file.digest}")
            raise PushCorrupted(
                f"{device.serial} has other bytes than {file.digest} after {MAX_PUSHES} pushes"
            )
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


async def _push(device: AdbDevice, file: PlanFile, source: Path) -> int:
    if file.size_bytes > LARGEST_V1_BYTES:
        check_size(device.serial, file, await device.features(SHELL_DEADLINE_S))
    return await device.push(
        source,
        f"{incoming_folder(device.work_root)}/{file.digest}",
        mode=0o755 if file.executable else 0o644,
        deadline_s=SHELL_DEADLINE_S + file.size_bytes / BYTES_PER_S,
    )


async def _commit_files(device: AdbDevice, files: Sequence[PlanFile], fence: int) -> set[str]:
    """Name the pushed files whose digest is right, and return these; remove the others."""
    names = " ".join(file.digest for file in files)
    programs = " ".join(file.digest for file in files if file.executable)
    set_modes = f"chmod 644 {_ALL_OF_THEM}" + (f"; chmod 755 {programs}" if programs else "")
    folder, incoming = quote(cache_folder(device.work_root)), quote(incoming_folder(device.work_root))
    commit = f"{touch_used(_ALL_OF_THEM, fence)} && mv -f {_ALL_OF_THEM} {folder}"
    result = await device.shell(
        f"cd {incoming} && set -- {names} && {{ {set_modes}; }}; "
        f"set -- $(sha256sum {_ALL_OF_THEM} | "
        'while read -r digest name; do [ "$digest" != "$name" ] || echo "$name"; done); '
        f'{{ [ $# = 0 ] || {{ {commit}; }}; }} && rm -f ./* && echo kept "$@"',
        deadline_s=SHELL_DEADLINE_S + sum(file.size_bytes for file in files) / BYTES_PER_S,
    )
    match result.text.split():
        case ["kept", *digests]:
            return set(digests)
        case _:
            raise PushFailed(f"{device.serial} could not store the pushed files: {result.message}")
