"""A matrix of very many cells: the time until the answer, and the delay of other agents."""

import time
from dataclasses import dataclass
from statistics import median

from busy_host import working
from fake_host import FakeHost
from machine import cpu_s
from program import register_model, submit, submit_wide
from rig import FarmRig

from farm.store.matrices.lazy_expansion import remaining_jobs

#: Phones of the host that works at the same time.
_BUSY_PHONES = 10
#: The pause between two of its exchanges.
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
    with working(busy, every_s=_EVERY_S) as worker:
        time.sleep(before_s)
        before_claims_s = worker.take_claims_s()
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
        before_ms=[1000 * claim_s for claim_s in before_claims_s],
        during_ms=[1000 * claim_s for claim_s in worker.claims_s],
    )
