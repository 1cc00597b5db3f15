"""Jobs per second that hosts claim and the farm settles, and the cost of each job."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fake_host import FakeHost
from machine import cpu_s
from program import register_model, submit
from rig import FarmRig, eventually

from farm.store.matrices.lazy_expansion import next_matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Jobs that were claimed, reported and settled."""

    per_s: float
    #: CPU time per job of the farm's process, and of the fake hosts.
    farm_ms: float
    hosts_ms: float

    def __str__(self) -> str:
        return f"{self.per_s:6.0f} jobs/s, {self.farm_ms:.2f} ms CPU each (hosts {self.hosts_ms:.2f} ms)"


class BusyHosts:
    """Hosts with phones that need no time for a run, and a queue that they do not finish."""

    def __init__(self, rig: FarmRig, *, hosts: int, phones: int) -> None:
        """Create the hosts, and run the checks of their phones."""
        self._rig = rig
        register_model(rig)
        self._hosts = []
        for number in range(hosts):
            host = FakeHost(rig.url, f"h{number}", rig.join_token(), phones)
            host.run_until_idle()
            # The farm closes idle connections.
            host.close()
            self._hosts.append(host)

    def queue(self, *, matrices: int, rounds: int) -> None:
        """Submit work, and wait until all of its jobs are queued."""
        for _ in range(matrices):
            submit(self._rig, rounds=rounds)
        eventually(lambda: self._rig.database.read(next_matrix) is None, "all is queued", within_s=300)

    def settle(self, for_s: float, *, together: bool) -> Settled:
        """Run jobs on all hosts side by side.

        Args:
            for_s: the duration.
            together: a host sends the reports of its phones in one call; otherwise one call each, in turn.
        """
        counts = [0] * len(self._hosts)
        farm_before_s, own_before_s, began_s = (
            cpu_s(self._rig.farm_pid),
            time.process_time(),
            time.perf_counter(),
        )
        ends_s = began_s + for_s

        def work(number: int, host: FakeHost) -> None:
            report: Callable[[list[dict[str, Any]]], int]
            report = host.run_all_together if together else host.run_all
            while time.perf_counter() < ends_s and (assignments := host.exchange()):
                counts[number] += report(assignments)

        threads = [threading.Thread(target=partial(work, *numbered)) for numbered in enumerate(self._hosts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not all(counts):
            raise RuntimeError(f"a host got no work: {counts}")
        count = sum(counts)
        return Settled(
            per_s=count / (time.perf_counter() - began_s),
            farm_ms=1000 * (cpu_s(self._rig.farm_pid) - farm_before_s) / count,
            hosts_ms=1000 * (time.process_time() - own_before_s) / count,
        )

    def close(self) -> None:
        """Close the connections; the next call connects again."""
        for host in self._hosts:
            host.close()
