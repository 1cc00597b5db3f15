"""How many jobs a second hosts are given and have settled, and what each costs the farm."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from machine import cpu_s
from played_host import PlayedHost
from program import register_model, submit
from rig import FarmRig, eventually

from farm.store.matrices.lazy_expansion import next_matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Jobs that were claimed, reported and settled."""

    per_s: float
    #: CPU time of the farm's process for one of them, and of the hosts that were played.
    farm_ms: float
    hosts_ms: float

    def __str__(self) -> str:
        return f"{self.per_s:6.0f} jobs/s, {self.farm_ms:.2f} ms CPU each (hosts {self.hosts_ms:.2f} ms)"


class BusyHosts:
    """Hosts with phones that need no time for a run, and a queue that is longer than they get."""

    def __init__(self, rig: FarmRig, *, hosts: int, phones: int) -> None:
        """Have the phones pass their checks."""
        self._rig = rig
        register_model(rig)
        self._hosts = []
        for number in range(hosts):
            host = PlayedHost(rig.url, f"h{number}", rig.join_token(), phones)
            host.run_until_idle()
            # The farm keeps no connection for those who are silent meanwhile.
            host.close()
            self._hosts.append(host)

    def queue(self, *, matrices: int, rounds: int) -> None:
        """Submit work, and wait until all of it has its rows."""
        for _ in range(matrices):
            submit(self._rig, rounds=rounds)
        eventually(lambda: self._rig.database.read(next_matrix) is None, "all is queued", within_s=300)

    def settle(self, for_s: float, *, together: bool) -> Settled:
        """Run jobs on all hosts side by side.

        Args:
            for_s: so long.
            together: a host sends the reports of its phones in one call; else one call each, one after the
                other.
        """
        counts = [0] * len(self._hosts)
        farm_before_s, own_before_s, began_s = (
            cpu_s(self._rig.farm_pid),
            time.process_time(),
            time.perf_counter(),
        )
        ends_s = began_s + for_s

        def work(number: int, host: PlayedHost) -> None:
            report: Callable[[list[dict[str, Any]]], int]
            report = host.run_all_together if together else host.run_all
            while time.perf_counter() < ends_s and (given := host.exchange()):
                counts[number] += report(given)

        threads = [threading.Thread(target=partial(work, *each)) for each in enumerate(self._hosts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not all(counts):
            raise RuntimeError(f"a host was given nothing to do: {counts}")
        count = sum(counts)
        return Settled(
            per_s=count / (time.perf_counter() - began_s),
            farm_ms=1000 * (cpu_s(self._rig.farm_pid) - farm_before_s) / count,
            hosts_ms=1000 * (time.process_time() - own_before_s) / count,
        )

    def close(self) -> None:
        """Hang up; the next call connects again."""
        for host in self._hosts:
            host.close()
