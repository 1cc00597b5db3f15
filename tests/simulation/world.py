"""The world of one seed: a farm, hosts, phones, people, and everything that goes wrong between them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

from pydantic import SecretStr

from farm.core.base.ids import HostId, MatrixId
from farm.core.devices.admin import AdminEvent
from farm.core.devices.host_state import HostEvent
from farm.core.errors import FarmError
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token, enroll
from farm.services.devices.admin import change_admin
from farm.services.hosts.admin import change_host
from farm.wire.agents.protocol import Enrollment
from farm.wire.documents.devices import OperatorRequest
from tests.simulation.faults import Mishaps
from tests.simulation.simulated_agents import Agent, Weather
from tests.simulation.simulated_devices import ModelPhone
from tests.simulation.simulated_farm import AtOnce, Process
from tests.support.farm.service_fixture import FarmRig

_HOSTS = ("bench-1", "bench-2")
#: Whom each phone is plugged into at first. Two share a CPU; one is reached over TCP by both hosts.
_HOMES = {"phone-a": {0}, "phone-b": {0}, "phone-c": {0}, "phone-d": {1}, "phone-e": {0, 1}}
_SHARED_CPU, _TCP = ("phone-a", "phone-b"), ("phone-e",)


class SimulatedWorld:
    """Built, troubled for a while, then left in peace; deterministic in its seed."""

    def __init__(self, rig: FarmRig, folder: Path, seed: int, *, is_comparable: bool = False) -> None:
        """`is_comparable`: nothing happens that the two databases are to take differently.

        On SQLite a farm is one process, and its next life need not wait for the duties of the one before.
        """
        self.rig = rig
        self.is_comparable = is_comparable
        self.clock = rig.clock
        self.random = Random(seed)
        self.is_calm = False
        self.trace: list[str] = []
        self.matrices: list[MatrixId] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failed: list[BaseException] = []
        self._lives = 0
        self._mishaps = Mishaps(self)
        self.phones = {
            name: ModelPhone(
                device_id=name,
                links=set(home),
                tcp=name in _TCP,
                cpu_domain="cpu-1" if name in _SHARED_CPU else None,
                note=self.note,
            )
            for name, home in _HOMES.items()
        }
        self.database = AtOnce(rig.database.engine.url.render_as_string(hide_password=False))
        self.processes = self.database.processes
        self.processes.append(self.new_process())
        self.agents = [
            Agent(self, index, self._enrolled(name), folder / name) for index, name in enumerate(_HOSTS)
        ]

    def note(self, text: str) -> None:
        self.trace.append(f"{self.clock.monotonic() - 1000:9.2f}  {text}")

    def spawn(self, work: Awaitable[Any]) -> "asyncio.Task[Any]":
        """Run something beside everything else; what it raises ends the simulation."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def reachable(self) -> Process:
        """A farm process that takes a call: any that is up, or one that is not."""
        up = [process for process in self.processes if process.is_up]
        return self.random.choice(up or self.processes)

    def check(self) -> None:
        """Raises what went wrong so far."""
        for error in self._failed:
            raise error
        broken = [text for phone in self.phones.values() for text in phone.broken]
        assert not broken, "\n".join(broken)

    async def troubled(self, seconds: float) -> None:
        """Let things go wrong for so long."""
        self._begin()
        end_s = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end_s:
            await asyncio.sleep(self.random.expovariate(1 / 8))
            await self.random.choice(self._mishaps.all())()
            self.check()

    async def calm(self, seconds: float) -> None:
        """Mend everything, then wait until all work is done; I13 wants that within `seconds`."""
        self._mend()
        end_s = self.clock.monotonic() + seconds
        turn = 0
        while left := self._left():
            assert self.clock.monotonic() < end_s, f"I13 after {seconds:g} s in peace: {left}"
            await asyncio.sleep(20)
            self.check()
            turn += 1
            if turn % 6 == 0:
                self._replug()

    async def close(self) -> None:
        for process in self.processes:
            process.stop()
            await process.context.heartbeats.aclose()
        for agent in self.agents:
            agent.is_running.set()
            agent.kill()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.database.close()

    def _begin(self) -> None:
        for process in self.processes:
            self.spawn(process.ticking())
        for agent in self.agents:
            agent.start()

    def _mend(self) -> None:
        self.note("from here on nothing goes wrong")
        self.is_calm = True
        for agent in self.agents:
            agent.weather, agent.frailty = Weather(), 0.0
            agent.is_running.set()
            agent.start()
            self.asks(
                lambda agent=agent: self.rig.write(
                    bind_tx(change_host, now=self.clock.now()),
                    agent.host_id,
                    HostEvent.ACTIVATED,
                    OperatorRequest(by="ann"),
                )
            )
        for process in list(self.processes):
            process.busy = 0.0
            if not process.is_up:
                self.replace_process(process)
        for name, home in _HOMES.items():
            self.link(self.phones[name], set(home))
        asked = OperatorRequest(by="ann")
        for name in self.phones:
            for event in (AdminEvent.ADMITTED, AdminEvent.UNCORDONED):
                self.asks(
                    lambda name=name, event=event: self.rig.write(
                        bind_tx(change_admin, now=self.clock.now()), name, event, asked
                    )
                )

    def _left(self) -> list[str]:
        """What there is still to do."""
        found = [f"job {row['job_id']} of {row['device_id']} is {row['state']}" for row in self._rows("jobs")]
        found += [f"attempt {row['attempt_id']} is {row['state']}" for row in self._rows("attempts")]
        open_device_actions = self.rig.rows(
            "SELECT device_action_id FROM device_actions WHERE finished_at IS NULL ORDER BY 1"
        )
        found += [f"device action {row['device_action_id']} is open" for row in open_device_actions]
        for agent in self.agents:
            if agent.life is not None and (pending := agent.life.spool.pending()):
                found.append(f"{agent.host_id} has reports of {pending} (I12)")
            # What was begun on a phone that is elsewhere now waits for its return.
            held = agent.life.active.attempt_by_id if agent.life is not None else {}
            found += [
                f"{agent.host_id} has {attempt_id} active"
                for attempt_id, each in held.items()
                if agent.index in self.phones[each.record.device_id].links
            ]
        return found

    def _rows(self, table: str) -> list[dict[str, Any]]:
        ended = {"jobs": "('finished')", "attempts": "('finished', 'returned', 'lost')"}[table]
        return self.rig.rows(f"SELECT * FROM {table} WHERE state NOT IN {ended} ORDER BY 1")

    def _replug(self) -> None:
        """What brings a phone that failed its check back for another."""
        for row in self.rig.rows("SELECT device_id FROM devices WHERE health = 'bad' ORDER BY 1"):
            phone = self.phones[row["device_id"]]
            links = set(phone.links)
            self.link(phone, set())
            self.later(lambda phone=phone, links=links: self.link(phone, links), 15.0)

    def link(self, phone: ModelPhone, links: set[int]) -> None:
        if phone.links != links:
            self.note(f"{phone.device_id} is plugged into {sorted(links)}")
            phone.links = links
            self.stir(phone)

    def stir(self, phone: ModelPhone) -> None:
        for agent in self.agents:
            agent.stir(phone.device_id)

    def asks(self, what: Callable[[], object]) -> None:
        """What a person asks may be refused."""
        try:
            what()
            for process in self.processes:
                process.context.held_exchanges.wake()
        except FarmError as error:
            self.note(f"refused: {error.message}")

    def later(self, what: Callable[[], None], seconds: float) -> None:
        async def then() -> None:
            await asyncio.sleep(seconds)
            what()

        self.spawn(then())

    def new_process(self) -> Process:
        self._lives += 1
        return Process(self.rig, self.database, self.random, f"farm {self._lives}")

    def add_process(self, process: Process) -> None:
        self.processes.append(process)
        self.spawn(process.ticking())

    def replace_process(self, process: Process) -> None:
        if process in self.processes and not process.is_up:
            self.processes.remove(process)
            self.add_process(self.new_process())
            self.note("a farm process starts")

    def _enrolled(self, name: str) -> HostId:
        token = self.rig.write(bind_tx(create_join_token, now=self.clock.now()), auto_admit=True)
        self.rig.write(
            bind_tx(enroll, now=self.clock.now()), Enrollment(host=name, join_token=SecretStr(token))
        )
        return HostId(name)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed.append(error)
