"""A matrix of very many cells: when its submitter is answered, and what other agents notice of it."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from machine import cpu_s
from played_host import PlayedHost
from program import register_model, submit, submit_wide
from rig import FarmRig

from farm.store.matrices.lazy_expansion import remaining_jobs

#: Of the host that works on meanwhile.
_BUSY_PHONES = 10
#: Between two of its exchanges: it is to notice, not to compete.
_EVERY_S = 0.3
_ROUNDS, _MATRICES = 100, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """What was measured of one matrix."""

    answered_s: float
    #: Until its last job was queued.
    queued_s: float
    #: Of the farm's process, for each job.
    cpu_us: float
    #: Exchanges of another host that gave work to ten phones: before, and while it was unfolded.
    before_ms: list[float]
    meanwhile_ms: list[float]

    def __str__(self) -> str:
        return (
            f"answered after {self.answered_s:.2f} s, queued after {self.queued_s:.0f} s, "
            f"{self.cpu_us:.0f} us of the farm's CPU a job\n"
            f"  {'':<11} claims of another host, median / 95 % / longest: before {_spread(self.before_ms)}, "
            f"meanwhile {_spread(self.meanwhile_ms)} ms"
        )


def _spread(times_ms: list[float]) -> str:
    ordered = sorted(times_ms) or [float("nan")]
    return f"{median(ordered):.0f} / {ordered[int(0.95 * (len(ordered) - 1))]:.0f} / {ordered[-1]:.0f}"


def wide_matrix(rig: FarmRig, *, devices: int, cells: int, before_s: float) -> Wide:
    """Submit one, and let another host work before and meanwhile."""
    register_model(rig)
    busy = PlayedHost(rig.url, "busy", rig.join_token(), _BUSY_PHONES)
    busy.run_until_idle()
    for _ in range(_MATRICES):
        submit(rig, rounds=_ROUNDS)
    wide = PlayedHost(rig.url, "wide", rig.join_token(), devices)
    wide.run_until_idle()
    with _working(busy) as worker:
        time.sleep(before_s)
        before_ms, worker.times_ms = worker.times_ms, []
        began_s, cpu_before_s = time.perf_counter(), cpu_s(rig.farm_pid)
        matrix_id = submit_wide(rig, keys=cells // devices, host="wide")
        answered_s = time.perf_counter() - began_s
        # Not over HTTP: the farm is to be busy with the matrix alone.
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
        meanwhile_ms=worker.times_ms,
    )


@dataclass(slots=True)
class _Worker:
    """A host that goes on working."""

    host: PlayedHost
    times_ms: list[float] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stopped.wait(_EVERY_S):
            # The farm hangs up on who is silent for some seconds; the next request connects anew.
            self.host.close()
            began_s = time.perf_counter()
            given = self.host.exchange()
            if given:
                self.times_ms.append(1000 * (time.perf_counter() - began_s))
                self.host.run_all_together(given)


@contextmanager
def _working(host: PlayedHost) -> Iterator[_Worker]:
    worker = _Worker(host)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(worker.run)
        try:
            yield worker
        finally:
            worker.stopped.set()
        work.result()
