"""The preflight of a run: the device's condition and cached files, read in one shell call."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.paths import cache_folder
from agents.device.state.conditions import condition, condition_commands
from farm.core.base.ids import Digest
from farm.core.devices.condition import Condition
from farm.phone.adb.decoding import lines
from farm.phone.adb.shell_sections import output_by_section, section_command

_DEADLINE_S = 20.0
#: Lines of `sha256sum` in the same output do not begin with an inode.
_ROW = re.compile(r"(\d{1,20} \d{1,20} [0-7]{3,4} .+) ([0-9a-f]{64})", re.ASCII)
#: Inode, size, mode, modification and change time, which the kernel sets at every change. For `stat -c`.
STATE_FORMAT = "%i %s %a %y %z %n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The state of a device at one moment."""

    condition: Condition
    #: The state of each cached file; while it is the same, the file is unchanged.
    state_by_digest: Mapping[Digest, str]


async def read_preflight(device: AdbDevice, work_root: str, now: datetime) -> Preflight:
    """Read the preflight once; `now` is the time stamp of the condition.

    Raises:
        DeviceError: the device went away, or was too slow.
    """
    commands = {"cached": cached_command(work_root), **condition_commands(work_root)}
    result = await device.shell(section_command(commands), deadline_s=_DEADLINE_S)
    sections = output_by_section(result.stdout.decode(errors="replace"))
    return Preflight(
        condition=condition(sections, now),
        state_by_digest=state_by_digest(sections.get("cached", "")),
    )


def cached_command(work_root: str) -> str:
    """Return the command that prints the state of cached files, for `state_by_digest`."""
    return f"cd {quote(cache_folder(work_root))} && stat -c '{STATE_FORMAT}' *"


def state_by_digest(text: str) -> dict[Digest, str]:
    """Parse the state of files from the output of `stat` on a cache; other names are dropped."""
    rows = (_ROW.fullmatch(line) for line in lines(text))
    return {Digest(row[2]): row[1] for row in rows if row}


def is_executable(state: str) -> bool:
    """Return whether a file's state lets its owner run it."""
    return int(state.split(" ")[2], 8) & 0o100 != 0
