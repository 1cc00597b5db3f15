"""Rows of the calibration about real process starts: one program on a virtual phone, against itself.

Slow, and bounded in time: each matrix is two cells of one program, ten rounds in the farm's order of starts,
under the supervisor of a virtual phone. What else the machine does is in the numbers, as it is on a phone.
"""

import asyncio
import math
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from program import WARMUP, samples_us, working_program
from sampler import Phone, phone_folder

from agents.adb.client import AdbClient
from agents.adb.server import AdbServer
from agents.device.facts import read_facts
from benchmarks.calibration_row import Row
from benchmarks.simulated_matrix import star
from benchmarks.simulated_start import VALUE_NS, simulated_start
from farm.core.base.ids import DeviceId
from farm.core.matrices.blocks import BLOCK_CANDIDATES, BlockPlan
from farm.core.results.pairing import JoinedValue, paired_rounds
from farm.core.results.speedup import Speedup, speedup
from farm.core.results.statistics.families import alarm_share
from farm.core.results.statistics.verdict import DIRECTED
from farm.core.runs.measurement import Reading
from farm.core.runs.stats import summarize_samples

_ROUNDS = 10
_CELLS = 2
#: Of a process start; the program's own work.
_WORK_S = 0.05


def virtual_rows(minutes: float) -> Iterator[Row]:
    """Yield the A/A alarms of as many matrices as begin within so many minutes; at least one is run."""
    results = asyncio.run(_measure(time.monotonic() + 60 * minutes))
    share = alarm_share(sum(result.verdict in DIRECTED for result in results), len(results))
    widths = [
        math.log(result.ci_high / result.ci_low) / 2 for result in results if result.ci_low and result.ci_high
    ]
    starts = len(results) * _ROUNDS * _CELLS
    yield Row(
        what=f"A/A alarms, {starts:,} real starts, {len(results)} matrices",
        measured=f"{share.alarms / share.pairs:.1%}",
        aim=f"5 % in {share.low:.1%} to {share.high:.1%}",
        holds=share.low <= 0.05,
    )
    yield Row(
        what="  their half-width, mean", measured=f"{sum(widths) / len(widths):.1%}", aim="", holds=True
    )


async def _measure(until_s: float) -> list[Speedup]:
    results: list[Speedup] = []
    with tempfile.TemporaryDirectory(prefix="benchfarm-") as name:
        folder = Path(name)
        program = folder / "program"
        program.write_bytes(working_program(_WORK_S))
        program.chmod(0o755)
        cores = sorted(os.sched_getaffinity(0))[:1]
        with phone_folder(cores, "/bin/sh", folder / "phones") as (address, _):
            async with AdbServer(folder / "adb", usb=False) as server:
                adb = AdbClient(server.address)
                await adb.connect(address)
                device = adb.device(address)
                await read_facts(device)
                phone = Phone(device=device)
                while not results or time.monotonic() < until_s:
                    results.append(await _matrix(phone, str(program), seed=len(results)))
    return results


async def _matrix(phone: Phone, program: str, *, seed: int) -> Speedup:
    """Run one matrix of two equal cells as the farm plans it, and compare them."""
    sides: tuple[list[JoinedValue], list[JoinedValue]] = ([], [])
    plan = BlockPlan(star(1), device_id=DeviceId("phone-1"), seed=seed, max_candidates=BLOCK_CANDIDATES)
    for planned in plan.starts(0, _ROUNDS * plan.start_count_per_round):
        await phone.start([program, "--iter=20", f"--warmup={WARMUP}"], sampling=False)
        printed = samples_us((await phone.finish()).stdout.decode())
        reading = Reading(
            samples_ns=tuple(1000 * sample for sample in printed),
            expected_samples=len(printed),
            actual_backend="cpu",
            accelerator="cpu",
            proof="cpu",
            clock_step_ns=1000,
        )
        log = math.log(summarize_samples(reading).value_ns / VALUE_NS)
        sides[planned.cell_index].append(
            simulated_start(planned.round, log, block=planned.block, step_ns=1000)
        )
    pairs, excluded = paired_rounds(*sides)
    return speedup(pairs, excluded=excluded)
