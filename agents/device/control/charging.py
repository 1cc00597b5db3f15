"""Pausing and resuming the charging of a device whose shell has root."""

from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.paths import charge_record, work_folder
from farm.core.upkeep.charging import ChargeWindow
from farm.phone.settings import CHARGE_SWITCHES, stop_value

_DEADLINE_S = 20.0
#: A su that does not answer in time counts as missing.
_AS_ROOT = (
    'as_root() { if [ -z "${BENCHFARM_SYS:-}" ] && [ "$(id -u)" = 0 ]; then sh -c "$1"; '
    'else timeout 5 su -c "$1" </dev/null 2>/dev/null || timeout 5 su 0 sh -c "$1" </dev/null; fi; }; '
)
_SYS = "S=${BENCHFARM_SYS:-/sys}; "


async def pause_charging(device: AdbDevice, window: ChargeWindow) -> str | None:
    """Pause the charging and verify it; return the sysfs file that did it, None where none does.

    The value that resumes it is recorded on the device first, for any later process.
    """
    record = quote(charge_record(device.work_root))
    entries = " ".join(
        quote(f"{switch.path}:{stop_value(switch, window)}:{switch.go}") for switch in CHARGE_SWITCHES
    )
    script = (
        f"{_SYS}for e in {entries}; do p=${{e%%:*}}; v=${{e#*:}}; stop=${{v%%:*}}; go=${{v#*:}}; "
        '[ -f "$S/$p" ] || continue; '
        f'echo "$p $go" >{record} && chmod 666 {record}; '
        'echo "$stop" >"$S/$p" && [ "$(cat "$S/$p")" = "$stop" ] && { echo "held $p"; exit 0; }; '
        f'echo "$go" >"$S/$p"; rm -f {record}; done'
    )
    folder = quote(work_folder(device.work_root))
    command = f"{_AS_ROOT}mkdir -p {folder}; as_root {quote(script)} 2>/dev/null"
    result = await device.shell(command, deadline_s=_DEADLINE_S)
    words = result.text.split()
    return words[1] if len(words) == 2 and words[0] == "held" else None


async def resume_charging(device: AdbDevice) -> bool:
    """Resume the charging that `pause_charging` paused, in this process or another; return whether it did."""
    record = quote(charge_record(device.work_root))
    read_back = f'[ "$(cat "$S/$p")" = "$go" ] && rm -f {record}'
    script = f'{_SYS}read -r p go <{record} && echo "$go" >"$S/$p" && {read_back}'
    command = f"[ ! -s {record} ] || {{ {_AS_ROOT}as_root {quote(script)} 2>/dev/null; }} && echo charging"
    result = await device.shell(command, deadline_s=_DEADLINE_S)
    return result.stdout.strip() == b"charging"
