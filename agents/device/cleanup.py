"""Clean-up of a device: runs are ended, the cache is emptied, or trimmed where a run needs space."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

import structlog

from agents.adb.client import AdbDevice
from agents.device.control.controls import restore_controls
from agents.device.device_cache import lru_key
from agents.device.paths import cache_folder, incoming_folder
from agents.device.probe import read_fence
from agents.device.run.gates import restore_screen_state
from agents.device.run.run_control import SUPERVISOR_FILE, clean_run
from farm.core.base.ids import Digest
from farm.core.runs.plan import PlanFile
from farm.phone.adb.decoding import lines
from farm.phone.hardware.storage import storage_free_bytes

_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupResult:
    """The space that a clean-up freed."""

    files: int
    freed_bytes: int


async def clean_device(device: AdbDevice) -> CleanupResult:
    """End all remaining runs, then empty the cache; the supervisor stays, which cleans up.

    Call it while no attempt uses the device: every run on it counts as abandoned.

    Raises:
        DeviceError: something lives on, or the phone went away, or was too slow.
    """
    fence = await read_fence(device)
    if fence > 0:
        await clean_run(device, fence)
    await restore_controls(device)
    await restore_screen_state(device)
    before = await _cached_bytes(device)
    # In a loop: the names of a large cache would be too long for one command line.
    remove = f'for f in *; do [ "$f" = {SUPERVISOR_FILE.digest} ] || rm -f "$f"; done'
    folder, incoming = quote(cache_folder(device.work_root)), quote(incoming_folder(device.work_root))
    await device.shell(f"rm -f {incoming}/*; cd {folder} && {remove}", deadline_s=_DEADLINE_S)
    after = await _cached_bytes(device)
    return CleanupResult(
        files=len(before) - len(after),
        freed_bytes=sum(before.values()) - sum(after.values()),
    )


async def _cached_bytes(device: AdbDevice) -> dict[str, int]:
    command = f"cd {quote(cache_folder(device.work_root))} && stat -c '%Y %s %n' *"
    result = await device.shell(f"{{ {command}; }} 2>/dev/null", deadline_s=_DEADLINE_S)
    files = cached_files(result.text)
    return {file.digest: file.size_bytes for file in files}


log = structlog.get_logger(__name__)

_EVICTION_DEADLINE_S = 30.0
#: `stat -c '%Y %s %n'`; names that are no digests are not ours and stay.
_ROW = re.compile(r"(\d{1,12}) (\d{1,18}) ([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFile:
    """One file of the device's cache."""

    #: Its mtime, which encodes the order of use.
    modified_s: int
    size_bytes: int
    digest: Digest


async def evict_files(
    device: AdbDevice,
    files: Sequence[PlanFile],
    *,
    min_free_bytes: int,
    cache_limit_bytes: int,
) -> None:
    """Remove files that a plan does not need, until its files fit within both limits or none is left.

    Nothing of ours may run on the device. `min_free_bytes` stay free beside the plan's files, where free
    space is known; `cache_limit_bytes` limit all cached files together, the plan's included.
    """
    folder = quote(cache_folder(device.work_root))
    commands = {"free": f"df -k {folder}", "cached": f"cd {folder} && stat -c '%Y %s %n' *"}
    sections = await device.read_sections(commands, _EVICTION_DEADLINE_S)
    cached = cached_files(sections.get("cached", ""))
    short_bytes = sum(file.size_bytes for file in cached) - cache_limit_bytes
    free_bytes = storage_free_bytes(sections.get("free", ""))
    if free_bytes is not None:
        short_bytes = max(short_bytes, min_free_bytes - free_bytes)
    evictions = select_evictions(cached, files, short_bytes=short_bytes)
    if evictions:
        log.info("device_cache_trimmed", serial=device.serial, files=len(evictions), free_bytes=free_bytes)
        # By standard input: a command line of adb holds only a thousand digests.
        names = "".join(f"{file.digest}\n" for file in evictions)
        command = f'cd {folder} && while read -r name; do rm -f "$name"; done'
        await device.shell(command, stdin=names.encode(), deadline_s=_EVICTION_DEADLINE_S)


def cached_files(text: str) -> list[CachedFile]:
    """Parse the output of `stat` on a cache."""
    matches = (_ROW.fullmatch(line) for line in lines(text))
    return [
        CachedFile(modified_s=int(match[1]), size_bytes=int(match[2]), digest=Digest(match[3]))
        for match in matches
        if match
    ]


def select_evictions(
    cached: Sequence[CachedFile], needed: Sequence[PlanFile], *, short_bytes: int
) -> list[CachedFile]:
    """Return the files to remove, least recently used first; never the supervisor, which cleans up.

    The `needed` files stay, or are still to be pushed; `short_bytes` are missing before the push.
    """
    size_by_digest = {file.digest: file.size_bytes for file in needed}
    present = {file.digest for file in cached}
    short_bytes += sum(size for digest, size in size_by_digest.items() if digest not in present)
    protected = size_by_digest.keys() | {SUPERVISOR_FILE.digest}
    evictions: list[CachedFile] = []
    for file in sorted(cached, key=lambda file: lru_key(file.modified_s)):
        if short_bytes <= 0:
            break
        if file.digest not in protected:
            evictions.append(file)
            short_bytes -= file.size_bytes
    return evictions
