"""The speed of claiming and settling jobs on both databases, compared with two job queues.

Four parts, each a ratio of two measurements in one run:

- a claim of ten phones with many jobs queued against one with few: time, and on PostgreSQL pages touched;
- jobs claimed and settled per second over HTTP, by fake hosts, against the workers of procrastinate and
  pgqueuer with jobs that do nothing, on the same PostgreSQL;
- the time until the answer to a matrix at the limit of cells, the time until its jobs are queued, and the
  delay of other agents' claims in between;
- the cost of idle agents for a farm's process.

A job of the farm is a plan, a report that is stored, parsed and evaluated, a measurement and six events; a
job of a queue is a row. The two numbers are printed side by side, but they are not the same.

    .venv/bin/python benchmarks/dispatch.py [--quick] [--only claim|settle|submit|idle]

PostgreSQL comes from the development dependencies, the two queues from the extra `bench`.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from compare import ratio
from deep_queue import deep_queue, in_turn, shallow_queue
from idle_agents import idle, memory_bytes
from machine import machine_facts
from rig import FarmRig, farm_rig, interrupted_by_sigterm, talk
from settling import BusyHosts
from wide_matrix import wide_matrix

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.database.postgres import NoPostgres, PostgresServer, running_postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The sizes of one run of this benchmark."""

    few: int
    many: int
    claims: int
    hosts: int
    phones: int
    settle_s: float
    rounds: int
    matrices: int
    #: Jobs of each peer; 0 skips it.
    procrastinate_jobs: int
    pgqueuer_jobs: int
    #: Jobs of the peer that waits for its own buffers because of its limit.
    serial_jobs: int
    wide_devices: int
    wide_cells: int
    idle_agents: int
    heartbeat_s: float
    idle_s: float


FULL = Plan(
    few=10_000,
    many=1_000_000,
    claims=40,
    hosts=4,
    phones=10,
    settle_s=15.0,
    rounds=100,
    matrices=4,
    procrastinate_jobs=10_000,
    pgqueuer_jobs=10_000,
    serial_jobs=20,
    wide_devices=200,
    wide_cells=1_000_000,
    idle_agents=1000,
    heartbeat_s=10.0,
    idle_s=30.0,
)
QUICK = Plan(
    few=100,
    many=1000,
    claims=3,
    hosts=1,
    phones=2,
    settle_s=0.5,
    rounds=50,
    matrices=1,
    procrastinate_jobs=100,
    pgqueuer_jobs=0,
    serial_jobs=0,
    wide_devices=2,
    wide_cells=4000,
    idle_agents=3,
    heartbeat_s=1.0,
    idle_s=1.0,
)


@dataclass(slots=True, kw_only=True)
class Farms:
    """The farms of one run: one for each part and database, or one for each database."""

    folder: Path
    server: PostgresServer | None
    #: Closes the shared farms; None: they are not shared.
    shared_by: ExitStack | None
    _shared: dict[str, FarmRig] = field(default_factory=dict)

    def databases(self) -> Iterator[tuple[str, "_Urls"]]:
        """Yield each database's name and its URL factory; the URL of the file in a farm's folder is None."""
        yield "SQLite", nullcontext
        if self.server is not None:
            yield "PostgreSQL", partial(_postgres_url, self.server)

    def each(self, part: str) -> Iterator[tuple[str, FarmRig]]:
        """Yield a farm on each database."""
        for name, urls in self.databases():
            if self.shared_by is None:
                with urls() as url, farm_rig(self.folder / f"{name}-{part}", url) as rig:
                    yield name, rig
                continue
            if name not in self._shared:
                url = self.shared_by.enter_context(urls())
                self._shared[name] = self.shared_by.enter_context(farm_rig(self.folder / name, url))
            yield name, self._shared[name]


def claims(plan: Plan, farms: Farms) -> None:
    """Compare claims from a long queue with claims from a short one."""
    print(f"\nclaim of 10 phones, {plan.many:,} jobs queued / {plan.few:,}")
    if farms.shared_by is not None:
        _claims_one_after_the_other(plan, farms)
        return
    for name, urls in farms.databases():
        with urls() as few_url, urls() as many_url, ExitStack() as stack:
            few = stack.enter_context(deep_queue(farms.folder / f"{name}-few", plan.few, few_url))
            many = stack.enter_context(deep_queue(farms.folder / f"{name}-many", plan.many, many_url))
            in_turn(many, few, 2)
            ones, others = in_turn(many, few, plan.claims)
            print(f"  {name:<11} time {ratio(ones, others)}, median {1000 * median(ones):.1f} ms", flush=True)
            if many_url is not None:
                touched, before = many.pages(), few.pages()
                print(f"  {'':<11} pages {touched / before:.3f} ({touched} / {before})", flush=True)


def _claims_one_after_the_other(plan: Plan, farms: Farms) -> None:
    """Compare claims from one growing queue, where other load falls on one of both."""
    for name, rig in farms.each("claim"):
        queue = shallow_queue(rig)
        queue.deepen(plan.few)
        others = [queue.claim_s() for _ in range(plan.claims)]
        queue.deepen(plan.many)
        ones = [queue.claim_s() for _ in range(plan.claims)]
        print(f"  {name:<11} time {ratio(ones, others)}, median {1000 * median(ones):.1f} ms", flush=True)


def settled(plan: Plan, farms: Farms) -> None:
    """Compare jobs per second of the farm and of the peers."""
    print(f"\njobs claimed and settled over HTTP, {plan.hosts} hosts with {plan.phones} phones each")
    ours = 0.0
    for name, rig in farms.each("settle"):
        ours = _settled(rig, plan, name)
    if farms.server is None:
        return
    for peer, jobs in (
        ("procrastinate", plan.procrastinate_jobs),
        ("pgqueuer", plan.pgqueuer_jobs),
        ("pgqueuer-serial", plan.serial_jobs),
    ):
        if find_spec(peer.partition("-")[0]) is None:
            print(f"  {peer} is not installed: pip install -e '.[bench]'")
        elif jobs:
            theirs = _peer_per_s(peer, jobs, farms.server)
            print(f"  {peer:<24} {theirs:8.0f} jobs/s; benchfarm / it {ours / theirs:.2f}", flush=True)


def submitted(plan: Plan, farms: Farms) -> None:
    """Measure a matrix at the limit of cells."""
    print(f"\na matrix of {plan.wide_cells:,} cells on {plan.wide_devices} phones, one round")
    for name, rig in farms.each("submit"):
        result = wide_matrix(rig, devices=plan.wide_devices, cells=plan.wide_cells, before_s=plan.settle_s)
        print(f"  {name:<11} {result}", flush=True)


def idled(plan: Plan, farms: Farms) -> None:
    """Measure the cost of waiting agents."""
    print(f"\n{plan.idle_agents} idle agents at a beat of {plan.heartbeat_s:g} s, for {plan.idle_s:g} s")
    for name, rig in farms.each("idle"):
        time.sleep(min(1.0, plan.idle_s))
        before = memory_bytes(rig.farm_pid)
        result = idle(rig, plan.idle_agents, heartbeat_s=plan.heartbeat_s, for_s=plan.idle_s)
        more = (result.memory_bytes - before) / 1e6
        print(f"  {name:<11} {more:.0f} MB more, {100 * result.cpu_share:.1f} % of a core", flush=True)


def _settled(rig: FarmRig, plan: Plan, name: str) -> float:
    """Print jobs per second, and return those with the reports of a host in one call."""
    hosts = BusyHosts(rig, hosts=plan.hosts, phones=plan.phones)
    hosts.queue(matrices=plan.matrices, rounds=plan.rounds)
    print(f"  benchfarm on {name:<11}{hosts.settle(plan.settle_s, together=False)}: one report a call")
    result = hosts.settle(plan.settle_s, together=True)
    print(f"  {'':<24}{result}: the reports of a host in one call", flush=True)
    hosts.close()
    return result.per_s


def _peer_per_s(peer: str, jobs: int, server: PostgresServer) -> float:
    with server.database() as name:
        words = [str(Path(__file__).with_name("peers.py")), peer, server.conninfo(name), str(jobs)]
        done = subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return jobs / float(done.stdout)


_Urls = Callable[[], AbstractContextManager[str | None]]


@contextmanager
def _postgres_url(server: PostgresServer) -> Iterator[str | None]:
    with server.database() as name:
        yield server.url(name)


PARTS = {"claim": claims, "settle": settled, "submit": submitted, "idle": idled}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small and short, all on one farm for each database: does it work?",
    )
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part; may be repeated")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    print(machine_facts(), flush=True)
    with interrupted_by_sigterm(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchfarm-")))
        server = None
        try:
            server = stack.enter_context(running_postgres())
        except NoPostgres as reason:
            talk(f"SQLite only: {reason}")
        farms = Farms(folder=folder, server=server, shared_by=stack if options.quick else None)
        for name, part in PARTS.items():
            if not options.only or name in options.only:
                part(plan, farms)


if __name__ == "__main__":
    main()
