"""The device's cache: files named by their digests, which are computed on the device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.files.lru_order import touch_used
from agents.device.files.verified_push import BYTES_PER_S, SHELL_DEADLINE_S, LocalPath, push_verified
from agents.device.paths import cache_folder, cache_path, incoming_folder
from agents.device.state.preflight import STATE_FORMAT, state_by_digest
from farm.core.base.ids import Digest
from farm.core.runs.plan import PlanFile
from farm.phone.adb.digests import digest_by_path


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheResult:
    """The paths of a plan's files on the device, and the bytes that were pushed."""

    path_by_name: dict[str, str]
    #: Bytes sent, repeats included; 0 when all files were present.
    pushed_bytes: int
    #: The state of the files that needed no push, when their digests were computed.
    state_by_digest: Mapping[Digest, str]


async def ensure_cached(
    device: AdbDevice, work_root: str, files: Sequence[PlanFile], local_path: LocalPath, *, fence: int = 0
) -> CacheResult:
    """Ensure that every file is in the device's cache with the right digest, computed on the device now.

    Call it once at a time per device: partial pushes of an earlier call are removed.

    Args:
        device: the phone.
        work_root: from the device's facts.
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
    valid = await _verify_cached(device, work_root, files, fence) if files else {}
    # Of equal files the executable one comes last, and wins.
    missing = sorted((file for file in files if file.digest not in valid), key=lambda file: file.executable)
    unique = list({file.digest: file for file in missing}.values())
    pushed_bytes = await push_verified(device, work_root, unique, local_path, fence)
    return CacheResult(
        path_by_name={file.name: cache_path(work_root, file.digest) for file in files},
        pushed_bytes=pushed_bytes,
        state_by_digest=valid,
    )


async def _verify_cached(
    device: AdbDevice, work_root: str, files: Sequence[PlanFile], fence: int
) -> dict[Digest, str]:
    """Return the files that are present and valid, with their state; remove partial pushes. One call."""
    names = " ".join(sorted({file.digest for file in files}))
    programs = " ".join(sorted({file.digest for file in files if file.executable}))
    folder, incoming = quote(cache_folder(work_root)), quote(incoming_folder(work_root))
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
    output = result.stdout.decode(errors="replace")
    digests, states = digest_by_path(output), state_by_digest(output)
    return {
        file.digest: states.get(file.digest, "") for file in files if digests.get(file.digest) == file.digest
    }
