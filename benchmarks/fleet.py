"""How one agent copes with many phones: 1, 20 and 100 scripted ones, and 20 of which one hangs.

A scripted phone's program sleeps and then prints a recorded output, so that any number of phones on one
machine are busy side by side: what is measured is the farm, not the programs. The busy share is the part of
all phone time, from submission to the last settled job, in which a program ran, by the phones' own clocks.
CPU time is that of the farm's and the agent's processes; what adb, the phones and their shells take is not
counted, and takes turns on the same cores.

    .venv/bin/python benchmarks/fleet.py [--quick]
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean

from machine import cpu_s, machine_facts
from program import register_model, scripted_program, submit
from rig import Rig, rig, talk

from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import PhoneHandle
from farm.wire.views import AttemptView

AIM = 0.98
#: How far into the first job a phone hangs, as a share of the job.
_HANGS_AFTER = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One fleet, and what it is given to do."""

    phones: int
    #: How long a program sleeps; longer where all that goes on around many phones shares two cores.
    seconds: float
    jobs_per_phone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one run of this benchmark tries."""

    sizes: tuple[Size, ...]
    #: Tried twice when all is well, to see what two equal runs differ by, then with a phone that hangs.
    hung: Size


FULL = Plan(
    sizes=(
        Size(phones=1, seconds=2.0, jobs_per_phone=10),
        Size(phones=20, seconds=5.0, jobs_per_phone=5),
        Size(phones=100, seconds=25.0, jobs_per_phone=2),
    ),
    hung=Size(phones=20, seconds=5.0, jobs_per_phone=6),
)
QUICK = Plan(
    sizes=(Size(phones=1, seconds=0.2, jobs_per_phone=2), Size(phones=2, seconds=0.2, jobs_per_phone=2)),
    hung=Size(phones=3, seconds=0.4, jobs_per_phone=2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a fleet did with its work."""

    jobs: int
    phones: int
    wall_s: float
    #: How long programs ran, all phones together, by the phones' own clocks.
    ran_s: float
    farm_cpu_s: float
    agent_cpu_s: float

    @property
    def jobs_per_s(self) -> float:
        """Throughput."""
        return self.jobs / self.wall_s

    @property
    def busy(self) -> float:
        """The share of phone time in which a program ran."""
        return self.ran_s / (self.phones * self.wall_s)


def load(bench: Rig, size: Size, *, hanging: PhoneHandle | None = None) -> Load:
    """Give every phone its jobs, and see them through; one that is to hang is not counted."""
    bench.await_idle()
    farm_s, agent_s, began_s = cpu_s(bench.farm_pid), cpu_s(bench.agent_pid), time.monotonic()
    matrix_id = submit(bench, rounds=size.jobs_per_phone)
    left_out = None
    if hanging is not None:
        left_out = hanging.serial
        time.sleep(_HANGS_AFTER * size.seconds)
        set_faults(hanging.state, Faults(hang=True))
    within_s = 120 + 3 * size.seconds * size.jobs_per_phone
    ended_s = bench.await_end(matrix_id, within_s=within_s, left_out=left_out)
    farm_s, agent_s = cpu_s(bench.farm_pid) - farm_s, cpu_s(bench.agent_pid) - agent_s
    done = bench.attempts(matrix_id, left_out=left_out)
    return Load(
        jobs=len(done),
        phones=size.phones - (hanging is not None),
        wall_s=ended_s - began_s,
        ran_s=sum(_ran_s(attempt) for attempt in done),
        farm_cpu_s=farm_s,
        agent_cpu_s=agent_s,
    )


def _ran_s(run: AttemptView) -> float:
    assert run.evidence is not None, run.message
    ended = run.evidence["exit"]
    assert isinstance(ended, dict), run.message
    return float(ended["duration_s"])


@contextmanager
def fleet(size: Size) -> Iterator[Rig]:
    """Scripted phones side by side, with a model to run."""
    with rig(size.phones, scripted=True) as bench:
        bench.put_program(scripted_program(size.seconds))
        register_model(bench)
        yield bench


def one_hangs(size: Size) -> tuple[list[Load], Load]:
    """The same work for all phones but one: twice while that one works too, and while it hangs."""
    with fleet(size) as bench:
        first = bench.phones[0]
        well = [load(bench, size) for _ in range(2)]
        talk(f"{size.phones} phones, all well: {', '.join(f'{each.wall_s:.1f} s' for each in well)}")
        return well, load(bench, size, hanging=first)


def row(name: str, found: Load) -> str:
    """One line of the table."""
    return (
        f"{name:<22}{found.jobs:>6}{found.wall_s:>8.1f} s{found.jobs_per_s:>9.2f} /s{found.busy:>8.1%}"
        f"{1000 * found.farm_cpu_s / found.jobs:>10.0f} ms{1000 * found.agent_cpu_s / found.jobs:>9.0f} ms"
    )


HEAD = (
    f"{'fleet':<22}{'jobs':>6}{'wall':>10}{'throughput':>12}{'busy':>8}{'farm a job':>13}{'agent a job':>12}"
)


def hung_lines(well: list[Load], hung: Load) -> str:
    """What the phones that work lose while one hangs, each phone's share of the work being the same."""
    per_phone = [each.jobs_per_s / each.phones for each in well]
    kept = hung.jobs_per_s / hung.phones / mean(per_phone)
    noise = abs(per_phone[0] / per_phone[1] - 1)
    return (
        f"throughput of a phone while another hangs / while all are well  {kept:.3f}  aim >= {AIM}"
        f"  (two equal runs differed by {noise:.1%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1, 2 and 3 phones, short jobs: does it work?")
    parser.add_argument("--phones", type=int, action="append", help="only fleets of this size")
    given = parser.parse_args()
    plan = QUICK if given.quick else FULL
    print(f"{machine_facts()}\n\n{HEAD}", flush=True)
    for size in plan.sizes:
        if not given.phones or size.phones in given.phones:
            with fleet(size) as bench:
                print(row(f"{size.phones} x {size.seconds:g} s", load(bench, size)), flush=True)
    if not given.phones:
        well, hung = one_hangs(plan.hung)
        print(row(f"{plan.hung.phones} x {plan.hung.seconds:g} s, again", well[-1]))
        print(row(f"{hung.phones} beside one hung", hung))
        print(f"\n{hung_lines(well, hung)}")


if __name__ == "__main__":
    main()
