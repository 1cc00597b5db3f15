"""A farm process on loopback under fuzzed calls of every role, while others time their own requests."""

import multiprocessing
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.security.attack.attackers import Tally, TokenFarm, attack_with
from tests.security.attack.probers import PROBER_HEAD, Prober, start_probers
from tests.security.farm_with_tokens import farm_process_with_tokens

#: Attackers at once, each a process of its own.
_ATTACKERS = 2
_CLASSES = (0, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What an attack showed."""

    tally: Tally
    probers: tuple[Prober, ...]
    took_s: float
    #: Processes that could run, on average over the last minute, at the end.
    load: float

    @property
    def failures(self) -> tuple[str, ...]:
        """Calls that the farm failed at, and requests of honest callers that were not done."""
        return (*self.tally.failures, *(refused for prober in self.probers for refused in prober.refused))

    @property
    def statuses(self) -> Counter[int]:
        """Count the answers by status; 0 is no answer."""
        statuses: Counter[int] = Counter()
        for (_, status), count in self.tally.answers.items():
            statuses[status] += count
        return statuses

    def __str__(self) -> str:
        calls = self.tally.answers.total()
        longest_s = max(max(prober.farm_waits_s) for prober in self.probers)
        with_own_s = max(max(prober.waits_s) for prober in self.probers)
        return "\n".join(
            (
                f"{calls} fuzzed calls in {self.took_s:.0f} s, {calls / self.took_s:.0f} a second; "
                f"{len(self.failures)} failed; longest wait of another caller {longest_s:.2f} s, and "
                f"{with_own_s:.2f} s with the caller's own wait for a core, at load {self.load:.1f} on "
                f"{os.cpu_count()} cores",
                *_table_of_roles(self.tally),
                PROBER_HEAD,
                *map(str, self.probers),
                "slowest fuzzed calls:",
                *(f"  {took_s:.2f} s {call[:120]}" for took_s, call in self.tally.slowest),
            )
        )


def _table_of_roles(tally: Tally) -> Iterator[str]:
    yield f"{'calls by':12}" + "".join(
        f"{name:>10}" for name in ("no answer", "2xx", "3xx", "4xx", "429", "5xx", "all")
    )
    for role in sorted({role for role, _ in tally.answers}):
        of_role = {status: count for (who, status), count in tally.answers.items() if who == role}
        by_class = [sum(n for status, n in of_role.items() if status // 100 == number) for number in _CLASSES]
        limited = of_role.get(429, 0)
        *others, failed = by_class
        figures = (*others[:3], others[3] - limited, limited, failed, sum(of_role.values()))
        yield f"{role:12}" + "".join(f"{count:10}" for count in figures)


def attack(calls: int, *, seed: int, within_s: float) -> Findings:
    """Attack a new farm with that many calls, or with as many as fit into the time."""
    with tempfile.TemporaryDirectory() as folder, farm_process_with_tokens(Path(folder)) as farm:
        return attack_farm(farm, calls, seed=seed, within_s=within_s)


def attack_farm(farm: TokenFarm, calls: int, *, seed: int, within_s: float) -> Findings:
    """Attack a running farm, while others ask it for little."""
    started_s = time.monotonic()
    with _probing(farm) as probers, _attacker_processes() as processes:
        attackers = [
            processes.submit(
                attack_with,
                farm,
                f"{seed}-{number}",
                calls=calls // _ATTACKERS,
                deadline_s=started_s + within_s,
            )
            for number in range(_ATTACKERS)
        ]
        tally = Tally()
        for attacker in attackers:
            tally.add(attacker.result())
        took_s = time.monotonic() - started_s
    return Findings(tally=tally, probers=tuple(probers), took_s=took_s, load=os.getloadavg()[0])


def _attacker_processes() -> ProcessPoolExecutor:
    # A fork would copy the locks of threads that others hold.
    return ProcessPoolExecutor(_ATTACKERS, mp_context=multiprocessing.get_context("spawn"))


@contextmanager
def _probing(farm: TokenFarm) -> Iterator[list[Prober]]:
    """Have others ask until the block ends; what failed in one of them is raised then."""
    done = threading.Event()
    with ThreadPoolExecutor(len(farm.tokens_of_others)) as threads:
        started = start_probers(farm, threads, done)
        try:
            yield [prober for prober, _ in started]
        finally:
            done.set()
        for _, asking in started:
            asking.result()
