"""A million samples by the Python client: from the farm's database to a frame.

A matrix of two cells on two devices, 20 runs of 50,000 samples each, is asked for over HTTP on loopback; farm
and client are one process, whose CPU time is that of both. The same samples are asked for as numbers in JSON,
which `GET /api/v1/attempts/{id}` has. Frames need `benchfarm[frames]`; without it that line is left out.

    .venv/bin/python benchmarks/client_samples.py [--quick]
"""

import argparse
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from machine import machine_facts

from benchfarm import Farm, Samples
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.ids import AttemptId
from farm.core.runs.samples import encode_samples
from farm.web.app import create_app_with_pages

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.farm.http_farm import served
from tests.web.conftest import fill

AIM_S = 1.0
_RUNS = 20
_TIMES = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The least of several times: wall time, and CPU time of farm and client together."""

    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.wall_s:6.2f} s, {self.cpu_s:5.2f} s of CPU"


def least_cost(ask: Callable[[], T], times: int) -> tuple[Cost, T]:
    """Return the least cost of a call, and its last answer."""
    costs = []
    for _ in range(times):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        answer = ask()
        costs.append((time.perf_counter() - wall_s, time.process_time() - cpu_s))
    return Cost(wall_s=min(wall for wall, _ in costs), cpu_s=min(cpu for _, cpu in costs)), answer


def put_samples(folder: Path, per_run: int) -> None:
    """Give every run samples that scatter by 4 % around 5 ms, as if they had been measured."""
    noise = random.Random(7)
    # Another program than the farm: its own connections refuse what no service does.
    with closing(sqlite3.connect(FarmConfig(data_dir=folder).database_path)) as connection, connection:
        for (number,) in connection.execute("SELECT measurement_id FROM measurements").fetchall():
            packed = encode_samples([max(1, int(noise.gauss(5e6, 2e5))) for _ in range(per_run)])
            connection.execute(
                "UPDATE measurements SET samples = ?, sample_count = ? WHERE measurement_id = ?",
                (packed, per_run, number),
            )


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 samples, once")
    quick: bool = parser.parse_args().quick
    per_run, times = (5_000, 1) if quick else (50_000, _TIMES)
    with tempfile.TemporaryDirectory(prefix="benchfarm-") as name:
        folder = Path(name)
        matrix, _, _ = fill(folder)
        put_samples(folder, per_run)
        app = create_app_with_pages(FarmConfig(data_dir=folder), SystemClock())
        with served(app) as (url, _), Farm(url) as farm:
            packed, samples = least_cost(lambda: farm.samples(matrix), times)
            ids = [AttemptId(attempt.run.attempt_id) for attempt in samples]
            numbers, _ = least_cost(lambda: [farm.client.attempt(number) for number in ids], times)
            report(samples, packed, numbers, times)


def report(samples: Samples, packed: Cost, numbers: Cost, times: int) -> None:
    """Print what it took."""
    print(machine_facts())
    print(f"\n{samples.sample_count:,} samples of {len(samples)} runs, least of {times}")
    print(f"samples(), unpacked                {packed}")
    total = packed.cpu_s
    if find_spec("arro3") is not None:
        as_of, attempts = samples.as_of, samples.attempts
        arrow, _ = least_cost(lambda: Samples(attempts, as_of=as_of).__arrow_c_stream__(), times)
        print(f"as Arrow, with all columns         {arrow}")
        total += arrow.cpu_s
    print(f"the same as numbers in JSON        {numbers}")
    print(f"numbers in JSON / samples(), CPU   {numbers.cpu_s / packed.cpu_s:6.2f}")
    million = total / samples.sample_count * 1e6
    print(f"a million samples as a frame       {million:6.2f} s of CPU, aim {AIM_S:.0f} s")


if __name__ == "__main__":
    main()
