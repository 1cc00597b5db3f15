"""What people order while a storm rages; an order that does not get through is nobody's fault."""

import time
from collections import Counter
from collections.abc import Callable
from itertools import count, islice

import sqlalchemy as sa

from farm.client.farm_client import FarmClient
from farm.core.base.ids import MatrixId
from farm.core.errors import FarmError
from farm.core.upkeep.device_action import DeviceActionKind
from farm.wire.documents.devices import OperatorRequest, ReleaseRequest, ReservationRequest
from tests.chaos.checks.oracle import witness_program
from tests.chaos.faults.schedule import Demand, Order
from tests.chaos.testbed.testbed import PERSON, Arena
from tests.support.fakes import matrix_spec

#: Nobody submits more while so many jobs wait: what is left after the storm has to end in bounded time.
ENOUGH = 45
_HOLD_S = 60
_TRIES, _TRY_EVERY_S = 5, 1.0
_SHORTEST_S, _LONGEST_S = 0.05, 1.0


class People:
    """Carries out demands; counts what became of them."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._nonces = count(1)
        #: Orders by name, and how many of them failed.
        self.given: Counter[str] = Counter()

    def give(self, demand: Demand) -> None:
        self._try(demand.order, lambda farm: self._give(farm, demand))

    def take_back(self, demand: Demand) -> None:
        """What is for a while ends; a phone that nobody gives back would be out for the whole storm."""
        verb_and_request: dict[Order, tuple[str, OperatorRequest]] = {
            Order.CORDON: ("uncordon", OperatorRequest(by=PERSON)),
            Order.HOLD: ("release", ReleaseRequest(by=PERSON)),
        }
        if demand.order in verb_and_request:
            verb, request = verb_and_request[demand.order]
            for _ in range(_TRIES):
                if self._try(verb, lambda farm: self._change(farm, demand, verb, request)):
                    return
                time.sleep(_TRY_EVERY_S)

    def unfinished(self) -> int:
        """How many jobs are to do."""
        query = sa.text("SELECT count(*) FROM jobs WHERE state <> 'finished'")
        return int(self._arena.farms[0].database.read(lambda connection: connection.scalar(query)) or 0)

    def _give(self, farm: FarmClient, demand: Demand) -> None:
        match demand.order:
            case Order.SUBMIT:
                self._submit(farm, demand.pick)
            case Order.CANCEL if (matrix_id := self._matrix(farm, demand.pick)) is not None:
                farm.cancel_matrix(matrix_id)
            case Order.RERUN if (matrix_id := self._matrix(farm, demand.pick)) is not None:
                if self.unfinished() < ENOUGH:
                    farm.rerun_matrix(matrix_id, failed=True)
            case Order.CORDON:
                self._change(farm, demand, "cordon", OperatorRequest(by=PERSON))
            case Order.HOLD:
                self._change(farm, demand, "reserve", ReservationRequest(by=PERSON, for_s=_HOLD_S))
            case Order.CLEAN:
                farm.request_device_action(
                    self._serial(demand.pick), DeviceActionKind.CLEAN, OperatorRequest(by=PERSON)
                )

    def _submit(self, farm: FarmClient, pick: float) -> None:
        """A matrix whose program is a new file, which has to be pushed."""
        if self.unfinished() >= ENOUGH:
            return
        run_s = _SHORTEST_S + pick * (_LONGEST_S - _SHORTEST_S)
        self._arena.farms[0].register_program(witness_program(run_s=run_s, nonce=next(self._nonces)))
        farm.submit_matrix(matrix_spec(rounds=2))

    def _matrix(self, farm: FarmClient, pick: float) -> MatrixId | None:
        """One of the latest few."""
        latest = sorted(matrix.matrix_id for matrix in islice(farm.matrices(), 3))
        return latest[int(pick * len(latest))] if latest else None

    def _change(self, farm: FarmClient, demand: Demand, verb: str, request: OperatorRequest) -> None:
        farm.change_device(self._serial(demand.pick), verb, request)

    def _serial(self, pick: float) -> str:
        phones = self._arena.phones
        return phones[int(pick * len(phones))].serial

    def _try(self, what: str, order: Callable[[FarmClient], None]) -> bool:
        self.given[what] += 1
        try:
            with self._arena.client() as farm:
                order(farm)
        except FarmError:
            self.given[f"{what}, failed"] += 1
            return False
        return True
