"""The network of the chaos tests does to a request what its trap says, and nothing to any other."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.chaos.network.proxy import Mischief, Proxy, Trap
from tests.chaos.testbed.event_loop_thread import Looping, looping
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.processes import eventually
from tests.support.faults.port_faults import held_port

_PATH = "/api/v1/tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A farm behind a proxy, asked for join tokens: each that it made is there to be counted."""

    farm: HttpFarm
    http: httpx.Client
    proxy: Proxy
    loop: Looping

    def ask(self) -> bool:
        """Whether the caller heard that a token was made."""
        try:
            answer = self.http.post(_PATH, json={"auto_admit": True, "valid_s": 600})
        except httpx.TransportError:
            return False
        return "token" in answer.json()

    def made(self) -> int:
        return len(self.farm.http.get(_PATH).json())

    def arm(self, mischief: Mischief, *, path: str = _PATH, hold_s: float = 0.3) -> None:
        self.loop.run(self.proxy.arm(Trap(mischief=mischief, path=path, hold_s=hold_s)))


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with http_farm(tmp_path) as farm, looping() as loop, held_port() as port:
        proxy = Proxy(lambda: [int(farm.url.rpartition(":")[2])])
        loop.run(proxy.start(port))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as http:
            yield Network(farm=farm, http=http, proxy=proxy, loop=loop)
        loop.run(proxy.stop())


def test_without_a_trap_requests_pass(network: Network) -> None:
    assert network.ask()
    assert network.made() == 1


@pytest.mark.parametrize(
    ("mischief", "hears", "made"),
    [
        (Mischief.REQUEST_DROPPED, False, 0),
        (Mischief.REQUEST_CUT, False, 0),
        (Mischief.UNANSWERED, False, 0),
        (Mischief.ANSWER_DROPPED, False, 1),
        (Mischief.ANSWER_CUT, False, 1),
        (Mischief.HEAD_ONLY, False, 1),
        (Mischief.LATE, False, 1),
        (Mischief.DELAYED, True, 1),
        (Mischief.OVERTAKEN, True, 1),
        (Mischief.SENT_TWICE, True, 2),
    ],
)
def test_one_request_runs_into_a_trap_and_the_next_one_passes(
    network: Network, mischief: Mischief, hears: bool, made: int
) -> None:
    network.arm(mischief)
    assert network.ask() is hears
    eventually(lambda: network.made() == made, f"{made} tokens are made")
    assert network.proxy.met == {mischief: 1}
    assert network.ask()
    assert network.made() == made + 1


def test_a_request_that_is_overtaken_arrives_after_a_later_one(network: Network) -> None:
    network.arm(Mischief.OVERTAKEN, hold_s=60)
    with ThreadPoolExecutor(1) as other:
        first = other.submit(network.ask)
        eventually(lambda: network.proxy.met[Mischief.OVERTAKEN], "the first is held")
        assert network.made() == 0
        assert network.ask()
        assert first.result()
    assert network.made() == 2


def test_a_trap_waits_for_requests_of_its_path(network: Network) -> None:
    network.arm(Mischief.REQUEST_DROPPED, path="/elsewhere")
    assert network.ask()
    assert not network.proxy.met
