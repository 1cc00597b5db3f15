"""The speed of sending a file to a phone: the agent's own client against `adb push`.

Both send the same 100 MB of incompressible data, in turn, to a virtual phone behind one adb server; the file
is removed from the phone before each. The agent lets the phone compute the file's digest before it renames
the file, which `adb push` does not: that is timed separately, with all other commands of the agent.

    .venv/bin/python benchmarks/push.py [--quick]
"""

import argparse
import asyncio
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from compare import ratio
from machine import machine_facts

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer, bundled_adb
from agents.adb.shell_v2 import ShellResult
from agents.device.device_cache import ensure_cached
from agents.device.facts import read_facts
from agents.device.paths import cache_folder
from agents.virtual.pool import start_devices, stop_devices
from farm.core.base.ids import Digest, digest_of
from farm.core.runs.plan import PlanFile

AIM = 0.9
_MB = 1_000_000


class TimedDevice(AdbDevice):
    """A device that records the time of pushes and of shell commands."""

    push_s = 0.0
    shell_s = 0.0

    async def push(self, source: Path, remote: str, *, mode: int, deadline_s: float) -> int:
        began_s = time.monotonic()
        sent = await super().push(source, remote, mode=mode, deadline_s=deadline_s)
        self.push_s += time.monotonic() - began_s
        return sent

    async def shell(
        self, command: str, *, deadline_s: float, stdin: bytes = b"", limit_bytes: int = 1024
    ) -> ShellResult:
        began_s = time.monotonic()
        result = await super().shell(command, deadline_s=deadline_s, stdin=stdin, limit_bytes=limit_bytes)
        self.shell_s += time.monotonic() - began_s
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One file brought into a phone's cache by the agent."""

    push_s: float
    #: The digest on the phone, and all other shell commands.
    check_s: float
    sent_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTimes:
    """The result of a run of this benchmark; every list has one entry per pair."""

    by_hand_s: list[float]
    by_agent: list[Push]
    warm: Push


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One phone, one file."""

    client: AdbClient
    address: str
    work_root: str
    source: Path
    file: PlanFile

    async def by_hand(self) -> float:
        """Return the seconds of `adb push`, process start included."""
        await self._forget()
        adb = [str(bundled_adb()), "-L", self.client.address, "-s", self.address]
        remote = f"{cache_folder(self.work_root)}/by-hand"
        began_s = time.monotonic()
        push = await asyncio.create_subprocess_exec(
            *adb, "push", str(self.source), remote, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert await push.wait() == 0
        return time.monotonic() - began_s

    async def by_agent(self, *, cold: bool = True) -> Push:
        """Send the file to the cache as the agent does before a run."""
        if cold:
            await self._forget()
        device = TimedDevice(self.client, self.address, self.work_root)
        cached = await ensure_cached(device, [self.file], self._local_path)
        return Push(push_s=device.push_s, check_s=device.shell_s, sent_bytes=cached.pushed_bytes)

    async def _local_path(self, digest: Digest) -> Path:
        return self.source

    async def _forget(self) -> None:
        device = self.client.device(self.address)
        await device.shell(f"rm -f {cache_folder(self.work_root)}/*", deadline_s=30)


async def measure(folder: Path, *, size_bytes: int, pairs: int) -> PushTimes:
    """Push in turn, each arm first in half of the pairs."""
    (phone,) = await asyncio.to_thread(start_devices, 1, folder / "phones")
    try:
        async with AdbServer(folder / "adb", usb=False) as server:
            await AdbClient(server.address).connect(phone.address)
            bench = await _bench(AdbClient(server.address), phone.address, folder / "file", size_bytes)
            await bench.by_agent()
            by_hand_s, by_agent = [], []
            for pair in range(pairs):
                for is_agent in (False, True) if pair % 2 == 0 else (True, False):
                    if is_agent:
                        by_agent.append(await bench.by_agent())
                    else:
                        by_hand_s.append(await bench.by_hand())
            await bench.by_agent()
            return PushTimes(by_hand_s=by_hand_s, by_agent=by_agent, warm=await bench.by_agent(cold=False))
    finally:
        await asyncio.to_thread(stop_devices, folder / "phones")


async def _bench(client: AdbClient, address: str, source: Path, size_bytes: int) -> Bench:
    content = os.urandom(size_bytes)
    await asyncio.to_thread(source.write_bytes, content)
    facts = await read_facts(client.device(address))
    file = PlanFile(name="file", digest=digest_of(content), size_bytes=size_bytes)
    return Bench(client=client, address=address, work_root=facts.work_root, source=source, file=file)


def report(times: PushTimes, *, size_bytes: int) -> str:
    """Return the table and its summary."""
    pushes_s = [push.push_s for push in times.by_agent]
    whole_s = [push.push_s + push.check_s for push in times.by_agent]
    check_s = median(push.check_s for push in times.by_agent)
    speeds = ratio(times.by_hand_s, pushes_s)
    lines = [f"{'arm':<34}{'pushes':>7}{'median':>10}{'speed':>12}"]
    for name, times_s in (
        ("adb push", times.by_hand_s),
        ("the agent, push alone", pushes_s),
        ("the agent, digest check included", whole_s),
    ):
        speed = f"{size_bytes / _MB / median(times_s):.0f} MB/s"
        lines.append(f"{name:<34}{len(times_s):>7}{median(times_s):>8.3f} s{speed:>12}")
    return "\n".join(
        [
            *lines,
            "",
            f"speed of a cold push  agent / adb push  {speeds}  aim >= {AIM}",
            f"with the digest check  agent / adb push  {ratio(times.by_hand_s, whole_s)}",
            f"digest check, {size_bytes / _MB:.0f} MB on the phone: {check_s:.3f} s a push",
            f"warm push: {times.warm.sent_bytes} bytes sent, {times.warm.check_s:.3f} s for the digest check",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two pairs of 5 MB: does it work?")
    quick = parser.parse_args().quick
    size_bytes, pairs = (5 * _MB, 2) if quick else (100 * _MB, 6)
    print(machine_facts())
    print(f"\n{pairs} pairs of pushes of {size_bytes / _MB:.0f} MB\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="benchfarm-") as folder:
        times = asyncio.run(measure(Path(folder), size_bytes=size_bytes, pairs=pairs))
    print(report(times, size_bytes=size_bytes))


if __name__ == "__main__":
    main()
