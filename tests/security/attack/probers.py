"""Callers with small requests of their own, one of each role, who time how long each of them waits.

On a busy machine a caller waits for a core, too, which no farm causes: the kernel counts that time by thread
(`/proc/thread-self/schedstat`, nanoseconds that could have run in its second field), and it is told apart.
"""

import threading
import time
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from farm.core.base.ids import digest_of
from farm.core.operations.role import Role
from tests.security.attack.attackers import TokenFarm

_ANSWER_S = 60.0
#: Between two requests of a caller.
_PAUSE_S = 0.1
_SCHEDSTAT = Path("/proc/thread-self/schedstat")


def waited_for_core_s() -> float:
    """Return how long this thread could have run and had no core, since it began; 0 where no one counts."""
    try:
        return int(_SCHEDSTAT.read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


@dataclass(slots=True, kw_only=True)
class Prober:
    """One caller; a viewer looks, an agent asks for the time, everyone else writes a small file."""

    role: str
    #: Seconds that each request took, in order.
    waits_s: list[float] = field(default_factory=list)
    #: Of these, the seconds that the caller itself waited for a core.
    own_s: list[float] = field(default_factory=list)
    #: Requests that were not done, with their answers.
    refused: list[str] = field(default_factory=list)

    def ask_until(self, done: threading.Event, url: str, token: str) -> None:
        """Ask until it is done, and once at least."""
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=_ANSWER_S) as http:
            while not self.waits_s or not done.wait(_PAUSE_S):
                began_s, own_before_s = time.perf_counter(), waited_for_core_s()
                try:
                    answer = self._ask(http)
                    problem = "" if answer.is_success else f"{answer.status_code} {answer.text[:300]}"
                except httpx.TransportError as error:
                    problem = repr(error)
                self.waits_s.append(time.perf_counter() - began_s)
                self.own_s.append(min(waited_for_core_s() - own_before_s, self.waits_s[-1]))
                self.refused += [f"{self.role}: {problem}"] if problem else []

    def _ask(self, http: httpx.Client) -> httpx.Response:
        if self.role == Role.VIEWER:
            return http.get("/api/v1/matrices/1")
        if self.role == Role.AGENT:
            return http.post("/api/v1/agent/clock", json={})
        content = f"small {self.role} {len(self.waits_s)}".encode()
        return http.put(f"/api/v1/blobs/{digest_of(content)}", content=content)

    @property
    def farm_waits_s(self) -> list[float]:
        """Seconds that each request took without the caller's own wait for a core."""
        return [wait_s - own_s for wait_s, own_s in zip(self.waits_s, self.own_s, strict=True)]

    def __str__(self) -> str:
        """Return a row: role, requests, waits in ms, refused ones.

        The waits are median, 99th percentile and longest without the caller's own for a core, the longest
        with it, and the longest own one.
        """
        waits = sorted(self.farm_waits_s)
        named = (
            *(waits[len(waits) // 2], waits[len(waits) * 99 // 100], waits[-1]),
            *(max(self.waits_s), max(self.own_s)),
        )
        figures = "".join(f"{wait * 1000:10.0f}" for wait in named)
        return f"{self.role:12}{len(waits):10}{figures}{len(self.refused):10}"


_HEADINGS = ("requests", "median ms", "99 % ms", "longest", "with own", "own", "refused")
PROBER_HEAD = f"{'prober':12}" + "".join(f"{heading:>10}" for heading in _HEADINGS)


def start_probers(
    farm: TokenFarm, threads: Executor, done: threading.Event
) -> list[tuple[Prober, "Future[None]"]]:
    """Start one of each role, with tokens that no attacker has; agents call where agents are served."""
    started = []
    for role, token in farm.tokens_of_others.items():
        prober = Prober(role=role)
        url = farm.agents_url if role == Role.AGENT else farm.url
        started.append((prober, threads.submit(prober.ask_until, done, url, token)))
    return started
