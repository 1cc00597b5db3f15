"""What there is to go wrong in a simulated world."""

import shutil
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from farm.core.devices.admin import AdminEvent
from farm.core.devices.host_state import HostEvent
from farm.core.upkeep.device_action import DeviceActionKind
from farm.database.transaction import bind_tx
from farm.services.checks.requested import request_check
from farm.services.devices.admin import change_admin, retire
from farm.services.devices.reservations import release, reserve
from farm.services.hosts.admin import change_host, limit_host
from farm.services.upkeep.device_actions import request_device_action
from farm.wire.documents.devices import OperatorRequest, ReleaseRequest, ReservationRequest
from farm.wire.documents.hosts import LimitRequest
from tests.simulation.simulated_agents import Weather
from tests.support.farm.direct_calls import cancel_matrix

if TYPE_CHECKING:
    from tests.simulation.world import SimulatedWorld

Doing = Callable[[], Coroutine[Any, Any, None]]


class Mishaps:
    """Each does one thing to the world, or asks the farm for one thing; the world mends it in the end."""

    def __init__(self, world: "SimulatedWorld") -> None:
        self._world = world

    def all(self) -> list[Doing]:
        return [
            *[self._submit] * 2,
            *[self._weather] * 4,
            *[self._kill_agent] * 2,
            self._lose_folder,
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
            self._device_action,
            self._host,
            self._limit,
            self._check,
        ]

    async def _submit(self) -> None:
        if len(self._world.matrices) < 8:
            self._world.asks(
                lambda: self._world.matrices.append(
                    self._world.rig.submit(rounds=1, seed=len(self._world.matrices))
                )
            )

    async def _weather(self) -> None:
        agent = self._world.random.choice(self._world.agents)
        agent.weather = self._world.random.choice(
            [
                Weather(),
                Weather(lose_request=0.3, lose_answer=0.3, double=0.3, stray=0.1, delay_s=2.0),
                Weather(lose_request=1.0),
                Weather(lose_answer=1.0),
                Weather(double=0.8, stray=0.3, delay_s=10.0),
            ]
        )
        self._world.note(f"network of {agent.host_id}: {agent.weather}")

    async def _kill_agent(self) -> None:
        agent = self._world.random.choice(self._world.agents)
        agent.kill()
        self._world.later(agent.start, self._world.random.choice([0.1, 5.0, 60.0, 200.0, 500.0]))

    async def _lose_folder(self) -> None:
        agent = self._world.random.choice(self._world.agents)
        agent.kill()
        self._world.note(f"the folder of {agent.host_id} is lost")
        shutil.rmtree(agent.folder, ignore_errors=True)
        self._world.later(agent.start, self._world.random.choice([0.1, 60.0]))

    async def _stop_agent(self) -> None:
        agent = self._world.random.choice(self._world.agents)
        agent.is_running.clear()
        self._world.note(f"{agent.host_id} is stopped")
        self._world.later(agent.is_running.set, self._world.random.choice([10.0, 100.0, 600.0]))

    async def _frail_agent(self) -> None:
        agent = self._world.random.choice(self._world.agents)
        agent.frailty = self._world.random.choice([0.0, 0.0, 0.05, 0.3])
        self._world.later(agent.start, 10.0)

    async def _replug_one(self) -> None:
        phone = self._world.random.choice(list(self._world.phones.values()))
        links = set(phone.links)
        self._world.link(phone, set())
        self._world.later(
            lambda: self._world.link(phone, phone.links or links),
            self._world.random.choice([1.0, 15.0, 120.0, 400.0]),
        )

    async def _move(self) -> None:
        name = self._world.random.choice(["phone-c", "phone-d"])
        self._world.link(self._world.phones[name], {self._world.random.randrange(len(self._world.agents))})

    async def _mute(self) -> None:
        phone = self._world.random.choice(list(self._world.phones.values()))
        phone.is_mute_until_s = self._world.clock.monotonic() + self._world.random.choice([3.0, 60.0, 150.0])
        self._world.note(f"{phone.device_id} does not answer for a while")
        self._world.stir(phone)

    async def _reboot(self) -> None:
        phone = self._world.random.choice(list(self._world.phones.values()))
        phone.reboot(self._world.clock.monotonic(), 30.0)
        self._world.note(f"{phone.device_id} reboots")
        self._world.stir(phone)

    async def _farm_down(self) -> None:
        process = self._world.random.choice(self._world.processes)
        if process.is_up:
            process.stop()
            self._world.note("a farm process is killed")
            pauses_s = [60.0, 130.0, 700.0] if self._world.is_comparable else [0.1, 10.0, 130.0, 700.0]
            self._world.later(
                lambda: self._world.replace_process(process), self._world.random.choice(pauses_s)
            )

    async def _second_farm(self) -> None:
        is_alone = self._world.is_comparable or self._world.database.engine.dialect.name == "sqlite"
        if len(self._world.processes) < 2 and not is_alone:
            self._world.note("a second farm process starts")
            self._world.add_process(self._world.new_process())

    async def _tick_twice(self) -> None:
        for process in self._world.processes:
            if process.is_up:
                process.tick()
                process.tick()

    async def _busy(self) -> None:
        for process in self._world.processes:
            process.busy = self._world.random.choice([0.0, 0.0, 0.5])

    async def _cancel(self) -> None:
        if self._world.matrices:
            matrix_id = self._world.random.choice(self._world.matrices)
            device = self._world.random.choice([None, *self._world.phones])
            self._world.asks(
                lambda: self._world.rig.write(
                    bind_tx(cancel_matrix, now=self._world.clock.now(), actor="user:ann"),
                    matrix_id,
                    device=device,
                )
            )
            self._world.note(f"matrix {matrix_id} is cancelled on {device or 'all'}")

    async def _admin(self) -> None:
        name, asked, now = (
            self._world.random.choice(list(self._world.phones)),
            OperatorRequest(by="ann"),
            self._world.clock.now(),
        )
        event = self._world.random.choice([*AdminEvent, AdminEvent.UNCORDONED, AdminEvent.ADMITTED])
        self._world.note(f"{name}: {event}")
        if event is AdminEvent.RETIRED:
            self._world.asks(lambda: self._world.rig.write(bind_tx(retire, now=now), name, asked))
        else:
            self._world.asks(
                lambda: self._world.rig.write(bind_tx(change_admin, now=now), name, event, asked)
            )

    async def _hold(self) -> None:
        name, now = self._world.random.choice(list(self._world.phones)), self._world.clock.now()
        by = self._world.random.choice(["ann", "bob"])
        if self._world.random.random() < 0.6:
            asked = ReservationRequest(by=by, for_s=self._world.random.choice([60, 600]))
            self._world.asks(lambda: self._world.rig.write(bind_tx(reserve, now=now), name, asked))
        else:
            self._world.asks(
                lambda: self._world.rig.write(
                    bind_tx(release, now=now),
                    name,
                    ReleaseRequest(by=by, force=self._world.random.random() < 0.5),
                )
            )

    async def _device_action(self) -> None:
        name, kind = (
            self._world.random.choice(list(self._world.phones)),
            self._world.random.choice(list(DeviceActionKind)),
        )
        self._world.asks(
            lambda: self._world.rig.write(
                bind_tx(request_device_action, now=self._world.clock.now()),
                name,
                kind,
                OperatorRequest(by="ann"),
            )
        )

    async def _host(self) -> None:
        agent, now = self._world.random.choice(self._world.agents), self._world.clock.now()
        event = self._world.random.choice([HostEvent.DRAINED, HostEvent.ACTIVATED, HostEvent.ACTIVATED])
        self._world.note(f"{agent.host_id}: {event}")
        self._world.asks(
            lambda: self._world.rig.write(
                bind_tx(change_host, now=now), agent.host_id, event, OperatorRequest(by="ann")
            )
        )

    async def _limit(self) -> None:
        agent, now = self._world.random.choice(self._world.agents), self._world.clock.now()
        asked = LimitRequest(by="ann", max_runs=self._world.random.choice([None, 1, 2]))
        self._world.asks(lambda: self._world.rig.write(bind_tx(limit_host, now=now), agent.host_id, asked))

    async def _check(self) -> None:
        name, now = self._world.random.choice(list(self._world.phones)), self._world.clock.now()
        self._world.asks(
            lambda: self._world.rig.write(bind_tx(request_check, now=now), name, OperatorRequest(by="ann"))
        )
