"""Eviction from a device's cache: files that the next run does not need are removed when space is short."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

import structlog

from agents.adb.client import AdbDevice
from agents.device.files.lru_order import lru_key
from agents.device.paths import cache_folder
from agents.device.run.supervisor import supervisor_file
from farm.core.base.ids import Digest
from farm.core.runs.plan import PlanFile
from farm.phone.adb.decoding import lines
from farm.phone.adb.shell_sections import output_by_section, section_command
from farm.phone.hardware.storage import storage_free_bytes

log = structlog.get_logger(__name__)

_DEADLINE_S = 30.0
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
    work_root: str,
    files: Sequence[PlanFile],
    *,
    min_free_bytes: int,
    cache_limit_bytes: int,
) -> None:
    """Remove files that a plan does not need, until its files fit within both limits or none is left.

    Args:
        device: the phone; nothing of ours runs on it.
        work_root: from the device's facts.
        files: as the plan lists them.
        min_free_bytes: left free beside the plan's files; ignored where free space is unknown.
        cache_limit_bytes: all cached files together, the plan's included.

    Raises:
        DeviceError: the device went away, or was too slow.
    """
    folder = quote(cache_folder(work_root))
    commands = {"free": f"df -k {folder}", "cached": f"cd {folder} && stat -c '%Y %s %n' *"}
    result = await device.shell(section_command(commands), deadline_s=_DEADLINE_S)
    sections = output_by_section(result.stdout.decode(errors="replace"))
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
        await device.shell(command, stdin=names.encode(), deadline_s=_DEADLINE_S)


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

    Args:
        cached: all that is there.
        needed: the files that stay, or are still to be pushed.
        short_bytes: missing before the push; negative when there is space.
    """
    size_by_digest = {file.digest: file.size_bytes for file in needed}
    present = {file.digest for file in cached}
    short_bytes += sum(size for digest, size in size_by_digest.items() if digest not in present)
    protected = size_by_digest.keys() | {supervisor_file().digest}
    evictions: list[CachedFile] = []
    for file in sorted(cached, key=lambda file: lru_key(file.modified_s)):
        if short_bytes <= 0:
            break
        if file.digest not in protected:
            evictions.append(file)
            short_bytes -= file.size_bytes
    return evictions
