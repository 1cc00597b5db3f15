"""A matrix of very many cells: the time until the answer, and the delay of other agents."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from fake_host import FakeHost
from machine import cpu_s
from program import register_model, submit, submit_wide
from rig import FarmRig

from farm.store.matrices.lazy_expansion import remaining_jobs

#: Phones of the host that works at the same time.
_BUSY_PHONES = 10
#: The pause between two of its exchanges: it observes, and does not compete.
_EVERY_S = 0.3
_ROUNDS, _MATRICES = 100, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """The measurements of one matrix."""

    answered_s: float
    #: Until its last job was queued.
    queued_s: float
    #: Of the farm's process, for each job.
    cpu_us: float
    #: Exchanges of another host that claim jobs of ten phones: before the matrix, and while it is expanded.
    before_ms: list[float]
    during_ms: list[float]

    def __str__(self) -> str:
        return (
            f"answered after {self.answered_s:.2f} s, queued after {self.queued_s:.0f} s, "
            f"{self.cpu_us:.0f} us of the farm's CPU a job\n"
            f"  {'':<11} claims of another host, median / 95 % / longest: before {_spread(self.before_ms)}, "
            f"meanwhile {_spread(self.during_ms)} ms"
        )


def _spread(times_ms: list[float]) -> str:
    ordered = sorted(times_ms) or [float("nan")]
    return f"{median(ordered):.0f} / {ordered[int(0.95 * (len(ordered) - 1))]:.0f} / {ordered[-1]:.0f}"


def wide_matrix(rig: FarmRig, *, devices: int, cells: int, before_s: float) -> Wide:
    """Submit a matrix while another host works, which also works before."""
    register_model(rig)
    busy = FakeHost(rig.url, "busy", rig.join_token(), _BUSY_PHONES)
    busy.run_until_idle()
    for _ in range(_MATRICES):
        submit(rig, rounds=_ROUNDS)
    wide = FakeHost(rig.url, "wide", rig.join_token(), devices)
    wide.run_until_idle()
    with _working(busy) as worker:
        time.sleep(before_s)
        before_ms, worker.times_ms = worker.times_ms, []
        began_s, cpu_before_s = time.perf_counter(), cpu_s(rig.farm_pid)
        matrix_id = submit_wide(rig, keys=cells // devices, host="wide")
        answered_s = time.perf_counter() - began_s
        # Not over HTTP, so that the farm works on the matrix alone.
        while rig.database.read(remaining_jobs, matrix_id):
            time.sleep(0.1)
        queued_s = time.perf_counter() - began_s
        cpu_us = 1e6 * (cpu_s(rig.farm_pid) - cpu_before_s) / cells
    busy.close()
    wide.close()
    return Wide(
        answered_s=answered_s,
        queued_s=queued_s,
        cpu_us=cpu_us,
        before_ms=before_ms,
        during_ms=worker.times_ms,
    )


@dataclass(slots=True)
class _Worker:
    """A host that keeps working."""

    host: FakeHost
    times_ms: list[float] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stopped.wait(_EVERY_S):
            # The farm closes connections that are idle for some seconds; the next request connects again.
            self.host.close()
            began_s = time.perf_counter()
            assignments = self.host.exchange()
            if assignments:
                self.times_ms.append(1000 * (time.perf_counter() - began_s))
                self.host.run_all_together(assignments)


@contextmanager
def _working(host: FakeHost) -> Iterator[_Worker]:
    worker = _Worker(host)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(worker.run)
        try:
            yield worker
        finally:
            worker.stopped.set()
        work.result()
