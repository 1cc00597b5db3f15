"""A host that keeps working while something else is measured, and the times of its claims."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from fake_host import FakeHost


@dataclass(slots=True)
class BusyHost:
    """A host that claims and runs jobs until it is stopped."""

    host: FakeHost
    #: The pause between two of its exchanges: it observes, and does not compete.
    every_s: float
    #: Durations of its exchanges that brought jobs.
    claims_s: list[float] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Exchange, and run what was claimed, until it is stopped."""
        while not self.stopped.wait(self.every_s):
            # The farm closes connections that are idle for some seconds; the next request connects again.
            self.host.close()
            began_s = time.perf_counter()
            if assignments := self.host.exchange():
                self.claims_s.append(time.perf_counter() - began_s)
                self.host.run_all_together(assignments)

    def take_claims_s(self) -> list[float]:
        """Return the durations so far, and begin anew."""
        claims_s, self.claims_s = self.claims_s, []
        return claims_s


@contextmanager
def working(host: FakeHost, *, every_s: float) -> Iterator[BusyHost]:
    """Let a host work in a thread of its own meanwhile. Raises at the end what the thread raised."""
    busy = BusyHost(host, every_s)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(busy.run)
        try:
            yield busy
        finally:
            busy.stopped.set()
        work.result()
