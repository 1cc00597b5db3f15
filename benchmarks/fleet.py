"""One agent with many phones: 1, 20 and 100 scripted ones, and 20 of which one sometimes hangs.

A scripted phone's program sleeps and then prints a recorded output, so that any number of phones on one
machine are busy side by side: the farm is measured, not the programs. The busy share is the part of
all phone time, from submission to the last settled job, in which a program ran, by the phones' own clocks.
CPU time is that of the farm's and the agent's processes; what adb, the phones and their shells take is not
counted, and takes turns on the same cores.

The cost of one hanging phone for the others is measured in turn, on one fleet: all well, one hangs, one
hangs, all well, and so on. Both arms count the others only: the throughput of a phone is its jobs divided by
the time from submission to the end of its last job, and that of the fleet is their sum.

    .venv/bin/python benchmarks/fleet.py [--quick] [--phones N | --hung]
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from compare import ratio_of_medians
from machine import cpu_s, machine_facts
from program import register_model, scripted_program, submit
from rig import Rig, rig, talk

from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.clock import SystemClock
from farm.wire.documents.matrices.jobs import AttemptView

AIM = 0.98
#: How far into the first job a phone hangs, as a share of the job.
_HANGS_AFTER = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One fleet and its work."""

    phones: int
    #: How long a program sleeps: longer for many phones, because their adb and shells share two cores.
    seconds: float
    jobs_per_phone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The sizes of one run of this benchmark."""

    sizes: tuple[Size, ...]
    #: The fleet that is measured in turn, all well and with a phone that hangs.
    hung: Size
    pairs: int


FULL = Plan(
    sizes=(
        Size(phones=1, seconds=2.0, jobs_per_phone=10),
        Size(phones=20, seconds=5.0, jobs_per_phone=5),
        Size(phones=100, seconds=25.0, jobs_per_phone=2),
    ),
    # Long enough that twenty phones, which begin at the same time, do not wait for the cores they share.
    hung=Size(phones=20, seconds=15.0, jobs_per_phone=2),
    pairs=6,
)
QUICK = Plan(
    sizes=(Size(phones=1, seconds=0.2, jobs_per_phone=2), Size(phones=2, seconds=0.2, jobs_per_phone=2)),
    hung=Size(phones=3, seconds=0.4, jobs_per_phone=2),
    # The hang comes last, so that the benchmark does not wait for the phone to recover.
    pairs=1,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The work that a fleet did."""

    jobs: int
    phones: int
    wall_s: float
    #: How long programs ran, all phones together, by the phones' own clocks.
    ran_s: float
    farm_cpu_s: float
    agent_cpu_s: float

    @property
    def jobs_per_s(self) -> float:
        """Return the throughput."""
        return self.jobs / self.wall_s

    @property
    def busy(self) -> float:
        """Return the share of phone time in which a program ran."""
        return self.ran_s / (self.phones * self.wall_s)


def measure(bench: Rig, size: Size) -> Load:
    """Run the jobs of every phone."""
    bench.await_idle()
    farm_s, agent_s, began_s = cpu_s(bench.farm_pid), cpu_s(bench.agent_pid), time.monotonic()
    matrix_id = submit(bench, rounds=size.jobs_per_phone)
    ended_s = bench.await_end(matrix_id, within_s=_within_s(size))
    farm_s, agent_s = cpu_s(bench.farm_pid) - farm_s, cpu_s(bench.agent_pid) - agent_s
    done = bench.attempts(matrix_id)
    return Load(
        jobs=len(done),
        phones=size.phones,
        wall_s=ended_s - began_s,
        ran_s=sum(_ran_s(attempt) for attempt in done),
        farm_cpu_s=farm_s,
        agent_cpu_s=agent_s,
    )


def others_per_s(bench: Rig, size: Size, odd: VirtualDeviceHandle, *, hangs: bool) -> float:
    """Return the throughput of all phones but the odd one, which works too, or hangs during its first job."""
    bench.await_idle()
    began = SystemClock().now()
    matrix_id = submit(bench, rounds=size.jobs_per_phone)
    if hangs:
        time.sleep(_HANGS_AFTER * size.seconds)
        set_faults(odd.state, Faults(hang=True))
    bench.await_end(matrix_id, within_s=_within_s(size), left_out=odd.serial if hangs else None)
    done = bench.attempts(matrix_id, left_out=odd.serial)
    if hangs:
        # Its remaining jobs are not work of the next arm.
        bench.farm.cancel_matrix(matrix_id)
        set_faults(odd.state, Faults())
    last_by_phone = {attempt.device_id: began for attempt in done}
    for attempt in done:
        assert attempt.finished_at is not None, attempt.message
        last_by_phone[attempt.device_id] = max(last_by_phone[attempt.device_id], attempt.finished_at)
    return sum(size.jobs_per_phone / (last - began).total_seconds() for last in last_by_phone.values())


def _within_s(size: Size) -> float:
    return 120 + 3 * size.seconds * size.jobs_per_phone


def _ran_s(run: AttemptView) -> float:
    assert run.evidence is not None, run.message
    ended = run.evidence["exit"]
    assert isinstance(ended, dict), run.message
    return float(ended["duration_s"])


@contextmanager
def fleet(size: Size) -> Iterator[Rig]:
    """Yield scripted phones side by side, with a model to run."""
    with rig(size.phones, scripted=True) as bench:
        bench.put_program(scripted_program(size.seconds))
        register_model(bench)
        yield bench


def one_hangs(size: Size, pairs: int) -> tuple[list[float], list[float]]:
    """Return the throughput of the others, all well and with one that hangs, in pairs of either order."""
    well, hung = list[float](), list[float]()
    with fleet(size) as bench:
        odd = bench.phones[0]
        # Not counted, because files are sent first.
        others_per_s(bench, size, odd, hangs=False)
        for number in range(pairs):
            for hangs in (False, True) if number % 2 == 0 else (True, False):
                (hung if hangs else well).append(others_per_s(bench, size, odd, hangs=hangs))
            talk(f"pair {number + 1}: {well[-1]:.2f} jobs a second, {hung[-1]:.2f} beside one that hangs")
    return well, hung


def row(name: str, load: Load) -> str:
    """Return one line of the table."""
    return (
        f"{name:<22}{load.jobs:>6}{load.wall_s:>8.1f} s{load.jobs_per_s:>9.2f} /s{load.busy:>8.1%}"
        f"{1000 * load.farm_cpu_s / load.jobs:>10.0f} ms{1000 * load.agent_cpu_s / load.jobs:>9.0f} ms"
    )


HEAD = (
    f"{'fleet':<22}{'jobs':>6}{'wall':>10}{'throughput':>12}{'busy':>8}{'farm a job':>13}{'agent a job':>12}"
)


def hung_lines(size: Size, well: list[float], hung: list[float]) -> str:
    """Return what the working phones lose while one hangs, as text."""
    arms = f"{len(well)} times {size.jobs_per_phone} jobs of {size.seconds:g} s in turn"
    return (
        f"{size.phones - 1} beside one hung, {arms}\n"
        f"throughput of the others while a phone hangs / while all are well  {ratio_of_medians(hung, well)}"
        f"  aim >= {AIM}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1, 2 and 3 phones, short jobs: does it work?")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--phones", type=int, action="append", help="only fleets of this size")
    part.add_argument("--hung", action="store_true", help="only what a phone that hangs costs the others")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    print(f"{machine_facts()}\n", flush=True)
    if not options.hung:
        print(HEAD, flush=True)
    for size in () if options.hung else plan.sizes:
        if not options.phones or size.phones in options.phones:
            with fleet(size) as bench:
                print(row(f"{size.phones} x {size.seconds:g} s", measure(bench, size)), flush=True)
    if not options.phones:
        print(f"\n{hung_lines(plan.hung, *one_hangs(plan.hung, plan.pairs))}")


if __name__ == "__main__":
    main()
