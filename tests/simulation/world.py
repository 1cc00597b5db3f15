"""The world of one seed: a farm, hosts, phones, people, and everything that goes wrong between them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from farm_rig import FarmRig
from pydantic import SecretStr

from farm.core.admin import AdminEvent
from farm.core.errand import ErrandKind
from farm.core.errors import FarmError
from farm.core.ids import HostId, MatrixId
from farm.services.cancel import cancel_matrix
from farm.services.errands import ask_errand
from farm.services.holds import hold, release
from farm.services.identity import create_join_token, enroll
from farm.services.operators import change_admin, retire
from farm.wire.agent import Enrollment
from farm.wire.device_views import Asked, HoldRequest, ReleaseRequest
from simulation.agent_side import Agent, Weather
from simulation.farm_side import AtOnce, Process
from simulation.phones import ModelPhone

_HOSTS = ("bench-1", "bench-2")
#: Whom each phone is plugged into at first. Two share a CPU; one is reached over TCP by both hosts.
_HOMES = {"phone-a": {0}, "phone-b": {0}, "phone-c": {0}, "phone-d": {1}, "phone-e": {0, 1}}
_SHARED_CPU, _TCP = ("phone-a", "phone-b"), ("phone-e",)

Doing = Callable[[], Coroutine[Any, Any, None]]


class SimulatedWorld:
    """Built, troubled for a while, then left in peace; deterministic in its seed."""

    def __init__(self, rig: FarmRig, folder: Path, seed: int, *, is_comparable: bool = False) -> None:
        """`is_comparable`: nothing happens that the two databases are to take differently.

        On SQLite a farm is one process, and its next life need not wait for the duties of the one before.
        """
        self.rig = rig
        self._is_comparable = is_comparable
        self.clock = rig.clock
        self.random = Random(seed)
        self.is_calm = False
        self.trace: list[str] = []
        self.matrices: list[MatrixId] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failed: list[BaseException] = []
        self._lives = 0
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
        self.processes.append(self._process())
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
            await self.random.choice(self._mishaps())()
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
        for agent in self.agents:
            agent.is_running.set()
            agent.kill()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.database.close()

    # What there is to go wrong.

    def _mishaps(self) -> list[Doing]:
        return [
            *[self._submit] * 2,
            *[self._weather] * 4,
            *[self._kill_agent] * 2,
            self._stop_agent,
            self._frail_agent,
            *[self._replug_one] * 3,
            self._move,
            self._mute,
            self._reboot,
            self._farm_down,
            self._second_farm,
            self._tick_twice,
            self._busy,
            self._cancel,
            self._admin,
            self._hold,
            self._errand,
        ]

    async def _submit(self) -> None:
        if len(self.matrices) < 8:
            self._asks(lambda: self.matrices.append(self.rig.submit(rounds=1, seed=len(self.matrices))))

    async def _weather(self) -> None:
        agent = self.random.choice(self.agents)
        agent.weather = self.random.choice(
            [
                Weather(),
                Weather(lose_request=0.3, lose_answer=0.3, double=0.3, stray=0.1, delay_s=2.0),
                Weather(lose_request=1.0),
                Weather(lose_answer=1.0),
                Weather(double=0.8, stray=0.3, delay_s=10.0),
            ]
        )
        self.note(f"network of {agent.host_id}: {agent.weather}")

    async def _kill_agent(self) -> None:
        agent = self.random.choice(self.agents)
        agent.kill()
        self._later(agent.start, self.random.choice([0.1, 5.0, 60.0, 200.0, 500.0]))

    async def _stop_agent(self) -> None:
        agent = self.random.choice(self.agents)
        agent.is_running.clear()
        self.note(f"{agent.host_id} is stopped")
        self._later(agent.is_running.set, self.random.choice([10.0, 100.0, 600.0]))

    async def _frail_agent(self) -> None:
        agent = self.random.choice(self.agents)
        agent.frailty = self.random.choice([0.0, 0.0, 0.05, 0.3])
        self._later(agent.start, 10.0)

    async def _replug_one(self) -> None:
        phone = self.random.choice(list(self.phones.values()))
        links = set(phone.links)
        self._link(phone, set())
        self._later(
            lambda: self._link(phone, phone.links or links), self.random.choice([1.0, 15.0, 120.0, 400.0])
        )

    async def _move(self) -> None:
        name = self.random.choice(["phone-c", "phone-d"])
        self._link(self.phones[name], {self.random.randrange(len(_HOSTS))})

    async def _mute(self) -> None:
        phone = self.random.choice(list(self.phones.values()))
        phone.is_mute_until_s = self.clock.monotonic() + self.random.choice([3.0, 60.0, 150.0])
        self.note(f"{phone.device_id} does not answer for a while")
        self._stir(phone)

    async def _reboot(self) -> None:
        phone = self.random.choice(list(self.phones.values()))
        phone.reboot(self.clock.monotonic(), 30.0)
        self.note(f"{phone.device_id} reboots")
        self._stir(phone)

    async def _farm_down(self) -> None:
        process = self.random.choice(self.processes)
        if process.is_up:
            process.stop()
            self.note("a farm process is killed")
            pauses_s = [60.0, 130.0, 700.0] if self._is_comparable else [0.1, 10.0, 130.0, 700.0]
            self._later(lambda: self._replace(process), self.random.choice(pauses_s))

    async def _second_farm(self) -> None:
        is_alone = self._is_comparable or self.database.engine.dialect.name == "sqlite"
        if len(self.processes) < 2 and not is_alone:
            self.note("a second farm process starts")
            self._add(self._process())

    async def _tick_twice(self) -> None:
        for process in self.processes:
            if process.is_up:
                process.tick()
                process.tick()

    async def _busy(self) -> None:
        for process in self.processes:
            process.busy = self.random.choice([0.0, 0.0, 0.5])

    async def _cancel(self) -> None:
        if self.matrices:
            matrix_id = self.random.choice(self.matrices)
            device = self.random.choice([None, *self.phones])
            self._asks(
                lambda: self.rig.write(
                    cancel_matrix, matrix_id, device=device, now=self.clock.now(), actor="user:ann"
                )
            )
            self.note(f"matrix {matrix_id} is cancelled on {device or 'all'}")

    async def _admin(self) -> None:
        name, asked, now = self.random.choice(list(self.phones)), Asked(by="ann"), self.clock.now()
        event = self.random.choice([*AdminEvent, AdminEvent.UNCORDONED, AdminEvent.ADMITTED])
        self.note(f"{name}: {event}")
        if event is AdminEvent.RETIRED:
            self._asks(lambda: self.rig.write(retire, name, asked, now=now))
        else:
            self._asks(lambda: self.rig.write(change_admin, name, event, asked, now=now))

    async def _hold(self) -> None:
        name, now = self.random.choice(list(self.phones)), self.clock.now()
        by = self.random.choice(["ann", "bob"])
        if self.random.random() < 0.6:
            asked = HoldRequest(by=by, for_s=self.random.choice([60, 600]))
            self._asks(lambda: self.rig.write(hold, name, asked, now=now))
        else:
            self._asks(
                lambda: self.rig.write(
                    release, name, ReleaseRequest(by=by, force=self.random.random() < 0.5), now=now
                )
            )

    async def _errand(self) -> None:
        name, kind = self.random.choice(list(self.phones)), self.random.choice(list(ErrandKind))
        self._asks(lambda: self.rig.write(ask_errand, name, kind, Asked(by="ann"), now=self.clock.now()))

    # How it is done.

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
        for process in list(self.processes):
            process.busy = 0.0
            if not process.is_up:
                self._replace(process)
        for name, home in _HOMES.items():
            self._link(self.phones[name], set(home))
        asked = Asked(by="ann")
        for name in self.phones:
            for event in (AdminEvent.ADMITTED, AdminEvent.UNCORDONED):
                self._asks(
                    lambda name=name, event=event: self.rig.write(
                        change_admin, name, event, asked, now=self.clock.now()
                    )
                )

    def _left(self) -> list[str]:
        """What there is still to do."""
        found = [f"job {row['job_id']} of {row['device_id']} is {row['state']}" for row in self._rows("jobs")]
        found += [f"attempt {row['attempt_id']} is {row['state']}" for row in self._rows("attempts")]
        for agent in self.agents:
            if agent.life is not None and (pending := agent.life.spool.pending()):
                found.append(f"{agent.host_id} has reports of {pending} (I12)")
            # What was begun on a phone that is elsewhere now waits for its return.
            held = agent.life.hand.held_by_id if agent.life is not None else {}
            found += [
                f"{agent.host_id} has {attempt_id} in hand"
                for attempt_id, each in held.items()
                if agent.index in self.phones[each.entry.device_id].links
            ]
        return found

    def _rows(self, table: str) -> list[dict[str, Any]]:
        over = {"jobs": "('finished')", "attempts": "('finished', 'given_back', 'lost')"}[table]
        return self.rig.rows(f"SELECT * FROM {table} WHERE state NOT IN {over} ORDER BY 1")

    def _replug(self) -> None:
        """What brings a phone that failed its check back for another."""
        for row in self.rig.rows("SELECT device_id FROM devices WHERE health = 'bad' ORDER BY 1"):
            phone = self.phones[row["device_id"]]
            links = set(phone.links)
            self._link(phone, set())
            self._later(lambda phone=phone, links=links: self._link(phone, links), 15.0)

    def _link(self, phone: ModelPhone, links: set[int]) -> None:
        if phone.links != links:
            self.note(f"{phone.device_id} is plugged into {sorted(links)}")
            phone.links = links
            self._stir(phone)

    def _stir(self, phone: ModelPhone) -> None:
        for agent in self.agents:
            agent.stir(phone.device_id)

    def _asks(self, what: Callable[[], object]) -> None:
        """What a person asks may be refused."""
        try:
            what()
            for process in self.processes:
                process.context.waiters.wake()
        except FarmError as error:
            self.note(f"refused: {error.message}")

    def _later(self, what: Callable[[], None], seconds: float) -> None:
        async def then() -> None:
            await asyncio.sleep(seconds)
            what()

        self.spawn(then())

    def _process(self) -> Process:
        self._lives += 1
        return Process(self.rig, self.database, self.random, f"farm {self._lives}")

    def _add(self, process: Process) -> None:
        self.processes.append(process)
        self.spawn(process.ticking())

    def _replace(self, process: Process) -> None:
        if process in self.processes and not process.is_up:
            self.processes.remove(process)
            self._add(self._process())
            self.note("a farm process starts")

    def _enrolled(self, name: str) -> HostId:
        token = self.rig.write(create_join_token, auto_admit=True, now=self.clock.now())
        self.rig.write(enroll, Enrollment(host=name, join_token=SecretStr(token)), now=self.clock.now())
        return HostId(name)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed.append(error)
