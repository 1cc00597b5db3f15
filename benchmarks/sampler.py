"""The cost of sampling: the same program on a virtual phone with the sampler and without it.

Both arms are process starts under the supervisor on the same phone, in turn, each of them first in half of
the pairs, after one start of each that is not counted. The figure of a start is the median of its iterations
by the program's own clock. A phone with one core shares it between program and sampler; one with two has a
free one. The phone shows the files of a usual one: three clusters, a GPU, sensors and a battery.

The sampler's CPU time is read from its own process, with the pauses that it started, in a further start that
sleeps. It depends on the shell: in dash each pause is a process, in mksh, Android's shell, none is.

    .venv/bin/python benchmarks/sampler.py [--quick]
"""

import argparse
import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from compare import ratio_of_medians
from machine import cpu_s, machine_facts
from program import ITERATIONS, WARMUP, samples_us, working_program
from rig import talk

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer
from agents.device.facts import read_facts
from agents.device.paths import run_folder
from agents.device.run.collect import CollectedRun, collect_command, collect_run
from agents.device.run.run_control import clean_run, start_run, wait_run
from agents.virtual.course import (
    Course,
    battery_files,
    cooling_files,
    gpu_files,
    policy_files,
    set_course,
    zone_files,
)
from agents.virtual.pool import start_devices, stop_devices
from farm.phone.condition.run_trace import run_trace

AIM_EFFECT, AIM_SHARE = 0.003, 0.005
#: The sampler has looked around and bound itself by then.
_SETTLED_S = 2.0
_TIMEOUT_S = 600.0
_ZONES = ("cpu-0-0", "cpu-1-0", "cpu-2-0", "gpu-0", "skin", "battery")
COURSE = Course(
    files={
        **policy_files(0, cores=(0, 1, 2, 3), khz=1_800_000),
        **policy_files(4, cores=(4, 5, 6), khz=2_367_000),
        **policy_files(7, cores=(7,), khz=2_914_000),
        **gpu_files(hz=220_000_000, most_hz=680_000_000),
        **{
            path: text
            for at, name in enumerate(_ZONES)
            for path, text in zone_files(at, name, celsius=40).items()
        },
        **{
            path: text
            for at in range(3)
            for path, text in cooling_files(at, f"thermal-cpufreq-{at}", level=0).items()
        },
        **battery_files(current=-350_000, charge=2_500_000),
    }
)


@dataclass(slots=True, kw_only=True)
class Phone:
    """A virtual phone, and the number of its last run."""

    device: AdbDevice
    fence: int = 0

    async def start(self, argv: Sequence[str], *, sampling: bool) -> None:
        """Start a command under the supervisor."""
        self.fence += 1
        await start_run(self.device, self.fence, argv, {}, _TIMEOUT_S, sampling=sampling)

    async def finish(self) -> CollectedRun:
        """Wait for the command in silence, bring its results back, and clean up."""
        then = collect_command(self.device.work_root, self.fence, with_condition=False)
        waited = await wait_run(self.device, self.fence, deadline_s=_TIMEOUT_S, then=then)
        ended = await collect_run(
            self.device, self.fence, limit_bytes=2**20, now=datetime.now(UTC), output=waited.output
        )
        await clean_run(self.device, self.fence)
        if ended.exit.code != 0:
            raise SystemExit(f"the program failed: {ended.stderr.decode(errors='replace')}")
        return ended


async def effect(phone: Phone, argv: Sequence[str], *, pairs: int) -> tuple[list[float], list[float]]:
    """Return the medians in microseconds without and with the sampler, in pairs."""
    medians: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(-1, pairs):
        for sampling in (False, True) if pair % 2 == 0 else (True, False):
            await phone.start(argv, sampling=sampling)
            ended = await phone.finish()
            if pair >= 0:
                medians[sampling].append(median(samples_us(ended.stdout.decode())))
    return medians[False], medians[True]


async def share(phone: Phone, seconds: float) -> tuple[float, int]:
    """Return the sampler's share of one core while a process sleeps, and the number of samples."""
    await phone.start(["sleep", str(_SETTLED_S + seconds + 1)], sampling=True)
    await asyncio.sleep(_SETTLED_S)
    sampler = find_sampler(run_folder(phone.device.work_root, phone.fence))
    before_s = cpu_s(sampler)
    await asyncio.sleep(seconds)
    used_s = cpu_s(sampler) - before_s
    trace = run_trace((await phone.finish()).trace)
    return used_s / seconds, len(trace.samples) if trace else 0


def find_sampler(folder: str) -> int:
    """Return the process that writes the trace of a run."""
    for path in Path("/proc").glob("[0-9]*/fd/1"):
        try:
            if str(path.readlink()) == f"{folder}/run.trace":
                return int(path.parts[2])
        except OSError:
            continue
    raise SystemExit("the sampler does not run")


@contextmanager
def phone_folder(cores: Sequence[int], shell: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Start a virtual phone on these cores of the machine; yield its address and its folder."""
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        (handle,) = start_devices(1, folder, shell=shell)
    finally:
        os.sched_setaffinity(0, ours)
    try:
        set_course(handle.state, COURSE)
        yield handle.address, handle.state
    finally:
        stop_devices(folder)


async def measure(cores: Sequence[int], shell: str, *, pairs: int, seconds: float, share_s: float) -> str:
    """Measure one phone; return its row."""
    with tempfile.TemporaryDirectory(prefix="benchfarm-") as name:
        folder = Path(name)
        program = folder / "program"
        program.write_bytes(working_program(seconds))
        program.chmod(0o755)
        with phone_folder(cores, shell, folder / "phones") as (address, _):
            async with AdbServer(folder / "adb", usb=False) as server:
                adb = AdbClient(server.address)
                await adb.connect(address)
                device = adb.device(address)
                await read_facts(device)
                phone = Phone(device=device)
                argv = [str(program), f"--iter={ITERATIONS}", f"--warmup={WARMUP}"]
                without, sampled = await effect(phone, argv, pairs=pairs)
                used, samples = await share(phone, share_s)
    label = f"{len(cores)} core{'s' if len(cores) > 1 else ''}, {Path(shell).name}"
    talk(label)
    return (
        f"{label:<16}{pairs:>6}{median(without) / 1000:>12.3f} ms{median(sampled) / 1000:>12.3f} ms   "
        f"{ratio_of_medians(sampled, without)!s:<32}{used:>8.2%}  {samples}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two pairs of short starts: does it work?")
    quick = parser.parse_args().quick
    pairs, seconds, share_s = (2, 0.5, 4.0) if quick else (30, 3.0, 60.0)
    print(machine_facts())
    print(f"\n{pairs} pairs of process starts, each about {seconds:g} s, on each phone\n", flush=True)
    available = sorted(os.sched_getaffinity(0))
    shells = ["/bin/sh", *filter(None, [shutil.which("mksh")])]
    heads = f"{'phone':<16}{'pairs':>6}{'without':>15}{'sampled':>15}   {'sampled / without':<32}"
    rows = [
        asyncio.run(measure(cores, shell, pairs=pairs, seconds=seconds, share_s=share_s))
        for cores in (available[:1], available[:2])
        if len(cores) == 1 or len(available) > 1
        for shell in shells
    ]
    print("\n".join([f"{heads}{'its CPU':>8}  samples", *rows, ""]))
    print(
        f"aims: the median moves by at most {AIM_EFFECT:.1%}; its CPU is at most {AIM_SHARE:.1%} of one core"
    )


if __name__ == "__main__":
    main()
