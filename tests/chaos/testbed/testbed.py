"""Where storms rage: farms, agents and phones as processes, with a network and cables that can fail."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agents.host.process import start_ticks
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.client.farm_client import FarmClient
from farm.core.errors import FarmError
from farm.wire.documents.devices import OperatorRequest, ReleaseRequest
from tests.chaos.faults.schedule import Cast
from tests.chaos.network.cable import Wire
from tests.chaos.network.proxy import Proxy
from tests.chaos.testbed.event_loop_thread import Looping, looping
from tests.support.fakes import stand_in_model
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    Process,
    running_agent,
    running_farm,
    running_phones,
)
from tests.support.faults.port_faults import held_port

#: The farm's patience, shortened so that storms see its end; the virtual phones' hosts are far from idle.
HASTE = {
    "FARM_REAP_EVERY_S": "0.5",
    "FARM_SILENT_AFTER_S": "7",
    "FARM_LOST_AFTER_S": "15",
    "FARM_START_WITHIN_S": "5",
    "FARM_UNSTARTED_AFTER_S": "10",
}
#: What each agent keeps free for its evidence, so that a small disk is large enough.
RESERVE_BYTES = 2**20
#: Who gives the orders.
PERSON = "storm"
#: So long a call of ours may take: a farm that is stopped stops nobody else.
_ANSWER_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Processes that are well and phones that are checked, when a storm begins."""

    farms: Sequence[FarmProcess]
    agents: Sequence[AgentProcess]
    phones: Sequence[VirtualDeviceHandle]
    #: By agent and phone.
    wires: dict[tuple[int, int], Wire]
    #: The agent that each phone is plugged in at.
    places: list[int]
    proxy: Proxy
    loop: Looping
    #: Where the network ends for people, too.
    url: str
    is_sqlite: bool

    @property
    def cast(self) -> Cast:
        return Cast(
            farms=len(self.farms),
            agents=len(self.agents),
            phones=len(self.phones),
            database="sqlite" if self.is_sqlite else "postgresql",
        )

    def client(self) -> FarmClient:
        """The farm through its network."""
        return FarmClient(self.url, answer_s=_ANSWER_S)

    def plug_in(self, phone: int) -> None:
        self.loop.run(self.wires[self.places[phone], phone].plug_in())

    def pull_out(self, phone: int) -> None:
        self.loop.run(self.wires[self.places[phone], phone].pull_out())

    def mend(self) -> None:
        """All is well again: whatever was stopped goes on, and whatever was killed lives."""
        self.loop.run(self.proxy.calm())
        for process in (*self.farms, *self.agents):
            if process.is_running:
                process.send(signal.SIGCONT)
        for farm in self.farms:
            revive(farm)
        for agent in self.agents:
            revive(agent)
        for number, phone in enumerate(self.phones):
            set_faults(phone.state, Faults())
            self.plug_in(number)

    def give_back_phones(self) -> bool:
        """Take back what was ordered; False when the farm does not listen yet."""
        try:
            with self.client() as farm:
                for phone in self.phones:
                    farm.change_device(phone.serial, "release", ReleaseRequest(by=PERSON, force=True))
                    farm.change_device(phone.serial, "uncordon", OperatorRequest(by=PERSON))
        except FarmError as error:
            if not error.transient:
                raise
            return False
        return True


def revive(process: Process) -> None:
    """Have it run, if it does not. One that ended by itself is a mistake of ours."""
    if not process.is_running:
        process.check_alive()
        process.spawn()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A process under SIGSTOP, known by when it started: its number may become another's."""

    pid: int
    ticks: int | None

    def go_on(self) -> None:
        if self.ticks is not None and start_ticks(self.pid) == self.ticks:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGCONT)


def stopped(pid: int) -> Stopped:
    """Stop a process where it stands."""
    found = Stopped(pid=pid, ticks=start_ticks(pid))
    if found.ticks is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    return found


@contextmanager
def set_arena(
    folder: Path,
    *,
    farms: int = 1,
    agents: int = 2,
    phones: int = 3,
    database_url: str | None = None,
    agent_folders: Mapping[int, Path] | None = None,
) -> Iterator[Arena]:
    """Start everything, and end it whatever happens."""
    agent_folders = agent_folders or {}
    with ExitStack() as stack:
        loop = stack.enter_context(looping())
        running = [
            stack.enter_context(running_farm(_farm(folder, number, database_url))) for number in range(farms)
        ]
        proxy = Proxy(lambda: [farm.port for farm in running])
        port = stack.enter_context(held_port())
        loop.run(proxy.start(port))
        stack.callback(lambda: loop.run(proxy.stop()))
        url = f"http://127.0.0.1:{port}"
        handles = stack.enter_context(running_phones(phones, folder / "phones", shared_cpu=False))
        wires = _wires(stack, loop, agents, handles)
        for precision in ("float32", "int8-core"):
            running[0].register_model(*stand_in_model(precision))
        arena = Arena(
            farms=running,
            agents=[
                stack.enter_context(
                    running_agent(
                        AgentProcess(
                            running[0],
                            agent_folders.get(number, folder / f"agent-{number}"),
                            [
                                replace(phone, address=wires[number, each].address)
                                for each, phone in enumerate(handles)
                            ],
                            host=f"bench-{number + 1}",
                            url=url,
                            environment={"FARM_AGENT_RESERVE_BYTES": str(RESERVE_BYTES)},
                            log=folder / f"agent-{number}.log",
                        )
                    )
                )
                for number in range(agents)
            ],
            phones=handles,
            wires=wires,
            places=[number % agents for number in range(phones)],
            proxy=proxy,
            loop=loop,
            url=url,
            is_sqlite=database_url is None,
        )
        for number in range(phones):
            arena.plug_in(number)
        running[0].await_phones(handles)
        yield arena


def _farm(folder: Path, number: int, database_url: str | None) -> FarmProcess:
    blobs = None if database_url is None else folder / "blobs"
    return FarmProcess(folder / f"farm-{number}", environment=HASTE, database_url=database_url, blobs=blobs)


def _wires(
    stack: ExitStack, loop: Looping, agents: int, phones: Sequence[VirtualDeviceHandle]
) -> dict[tuple[int, int], Wire]:
    """Pulled out, all of them; the end pulls them out again."""
    wires = {
        (agent, number): Wire(stack.enter_context(held_port()), int(phone.address.rpartition(":")[2]))
        for agent in range(agents)
        for number, phone in enumerate(phones)
    }
    for wire in wires.values():
        stack.callback(lambda wire=wire: loop.run(wire.pull_out()))
    return wires
