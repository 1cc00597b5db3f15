"""What a phone is: read once, in one shell call, and whether it has what every run needs."""

from collections.abc import Mapping

from agents.adb.client import AdbDevice
from farm.core.device import DeviceFacts
from farm.core.errors import DeviceProtocol, DeviceUnfit
from farm.phone import facts
from farm.phone.proc import core_count, core_count_of_nproc, memory_bytes
from farm.phone.properties import properties
from farm.phone.sections import output_by_section, section_command

#: Android 8.0, the first with sha256sum.
MIN_API_LEVEL = 26
#: What the supervisor and the cache are made with, beyond what any shell brings along.
_TOOLS = ("sha256sum", "setsid", "flock", "timeout", "grep", "env")
_DEADLINE_S = 20.0

FACTS_COMMAND = section_command(
    {
        "getprop": "getprop",
        "machine": "uname -m",
        "kernel": "uname -r",
        "system": "uname -s",
        "cpuinfo": "cat /proc/cpuinfo",
        "nproc": "nproc",
        "meminfo": "cat /proc/meminfo",
        # The first folder that can be written; a virtual phone names its own.
        "work_root": 'for d in "$(getprop ro.benchfarm.work_root)" /data/local/tmp "$TMPDIR" /tmp; do '
        'if [ -d "$d" ] && [ -w "$d" ]; then echo "$d"; break; fi; done',
        "missing": f"for t in {' '.join(_TOOLS)}; do command -v $t >/dev/null || echo $t; done; echo checked",
        # The supervisor waits for a process that setsid must not put a fork in front of.
        "setsid": "setsid sh -c 'echo $$' & echo $!; wait",
    }
)


async def read_facts(device: AdbDevice) -> DeviceFacts:
    """Ask a phone what it is. What it does not say is None; a device side that is not Android says little.

    Raises:
        DeviceUnfit: it can run nothing: too old an Android, a tool missing, nowhere to write.
        DeviceError: the phone went away, was too slow, or cut its answer short.
    """
    result = await device.shell(FACTS_COMMAND, deadline_s=_DEADLINE_S)
    said = output_by_section(result.stdout.decode(errors="replace"))
    if "setsid" not in said:
        raise DeviceProtocol(f"{device.serial} answered only {sorted(said)} when asked what it is")
    if reason := unfitness(said):
        raise DeviceUnfit(f"{device.serial} {reason}")
    return device_facts(said, device.serial)


def unfitness(said: Mapping[str, str]) -> str | None:
    """Why the phone can run nothing, by its answers to FACTS_COMMAND; None when it can."""
    level = facts.api_level(properties(said["getprop"]))
    missing = [word for word in said["missing"].split() if word != "checked"]
    if level is not None and level < MIN_API_LEVEL:
        return f"runs Android API level {level}; {MIN_API_LEVEL} (Android 8.0) is the least"
    if missing:
        return f"has no {', '.join(missing)}"
    if not said["work_root"].startswith("/"):
        return "has no folder that its shell may write to"
    if len(set(said["setsid"].split())) != 1:
        return "has a setsid that forks, so that no exit code could be had"
    return None


def device_facts(said: Mapping[str, str], serial: str) -> DeviceFacts:
    """What a phone is, by its answers; `serial` stands in where it has no number of its own."""
    known = properties(said["getprop"])
    machine = facts.abi_of_machine(said["machine"])
    return DeviceFacts(
        serialno=facts.serialno(known) or serial,
        device_model=facts.device_model(known) or f"{said['system']} {said['machine']}".strip() or "unknown",
        manufacturer=facts.manufacturer(known),
        soc=facts.soc(known),
        android=facts.android_release(known),
        api_level=facts.api_level(known),
        abis=facts.abis(known) or ((machine,) if machine else ()),
        build_fingerprint=facts.build_fingerprint(known),
        kernel=said["kernel"].strip() or None,
        cores=core_count(said["cpuinfo"]) or core_count_of_nproc(said["nproc"]),
        memory_bytes=memory_bytes(said["meminfo"], "MemTotal"),
        work_root=said["work_root"].rstrip("/"),
        virtual=facts.is_virtual(known),
        cpu_domain=facts.cpu_domain(known),
    )
