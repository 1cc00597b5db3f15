"""Plays a schedule on an arena, and waits until all has come to rest."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.chaos.checks.checker import alive, reckon
from tests.chaos.checks.summary import Summary, summary_of
from tests.chaos.faults.healer import Caretaker
from tests.chaos.faults.injection import Undo, disturb
from tests.chaos.faults.schedule import Fault, Schedule
from tests.chaos.load import People
from tests.chaos.testbed.testbed import Arena
from tests.support.farm.processes import eventually

#: Everything is at rest within this after a storm of any length; on a quiet machine in a small part of it.
REST_S = 420.0


@dataclass(frozen=True, slots=True)
class _Step:
    at_s: float
    act: Callable[[], object]


@dataclass
class Storm:
    """One storm; played once."""

    arena: Arena
    schedule: Schedule
    #: Called with each fault as it begins.
    tell: Callable[[Fault], None] = lambda fault: None
    _undo_by_number: dict[int, Undo] = field(default_factory=dict)
    _orders: list[Future[None]] = field(default_factory=list)

    def play(self) -> Summary:
        """Raises AssertionError where a promise is broken, or rest does not come."""
        people = People(self.arena)
        began_s = time.monotonic()
        with ThreadPoolExecutor(4, thread_name_prefix="people") as pool:
            steps = [*self._faults(), *self._demands(people, pool)]
            for step in sorted(steps, key=lambda step: step.at_s):
                time.sleep(max(0.0, began_s + step.at_s - time.monotonic()))
                step.act()
        for order in self._orders:
            order.result()
        storm_s = time.monotonic() - began_s
        self._come_to_rest(people)
        reckon(self.arena)
        rest_s = time.monotonic() - began_s - storm_s
        return summary_of(self.arena, self.schedule, people.given, storm_s=storm_s, rest_s=rest_s)

    def _come_to_rest(self, people: People) -> None:
        deadline_s = time.monotonic() + REST_S

        def comes(look: Callable[[], bool], what: str) -> None:
            eventually(look, what, within_s=deadline_s - time.monotonic(), every_s=0.5)

        self.arena.mend()
        comes(self.arena.give_back_phones, "the farm answers")
        caretaker = Caretaker(self.arena)

        def is_at_rest() -> bool:
            caretaker.see_to_phones()
            return people.unfinished() == 0

        comes(is_at_rest, "every job ends")
        for agent in self.arena.agents:
            comes(partial(_is_empty, agent.spool), f"{agent.spool} is sent")
        for phone in self.arena.phones:
            comes(partial(_is_quiet, phone.state), f"runs on {phone.serial} end")

    def _faults(self) -> Iterator[_Step]:
        for number, fault in enumerate(self.schedule.faults):
            yield _Step(fault.at_s, partial(self._begin, number, fault))
            yield _Step(fault.at_s + fault.lasts_s, partial(self._end, number))

    def _demands(self, people: People, pool: ThreadPoolExecutor) -> Iterator[_Step]:
        for demand in self.schedule.demands:
            yield _Step(demand.at_s, partial(self._order, pool, partial(people.give, demand)))
            taken_back = partial(people.take_back, demand)
            yield _Step(demand.at_s + demand.lasts_s, partial(self._order, pool, taken_back))

    def _begin(self, number: int, fault: Fault) -> None:
        self.tell(fault)
        self._undo_by_number[number] = disturb(self.arena, fault)

    def _end(self, number: int) -> None:
        self._undo_by_number.pop(number)()

    def _order(self, pool: ThreadPoolExecutor, order: Callable[[], None]) -> None:
        self._orders.append(pool.submit(order))


def _is_quiet(phone: Path) -> bool:
    return not list(alive(phone))


def _is_empty(spool: Path) -> bool:
    return not list(spool.glob("*.json"))
