"""A schedule is its seed's, and asks nothing impossible."""

import itertools
from collections import Counter

from agents.virtual.faults import Faults, parse_faults
from tests.chaos.faults.schedule import AILMENTS, Cast, Fault, Kind, Order, schedule

_CAST = Cast(farms=2, agents=2, phones=3, database="postgresql")


def test_a_seed_draws_the_same_schedule_again_and_another_seed_another() -> None:
    assert schedule(1, 50, _CAST) == schedule(1, 50, _CAST)
    assert schedule(1, 50, _CAST) != schedule(2, 50, _CAST)


def test_a_part_suffers_one_fault_at_a_time() -> None:
    farm_faults = [
        fault
        for fault in schedule(3, 500, _CAST).faults
        if fault.kind in (Kind.FARM_KILLED, Kind.FARM_STOPPED)
    ]
    assert farm_faults
    for target in range(_CAST.farms):
        own = [fault for fault in farm_faults if fault.target == target]
        assert all(_end_s(before) <= after.at_s for before, after in itertools.pairwise(own))


def test_a_thousand_faults_are_of_all_kinds_that_their_database_knows() -> None:
    on_postgres = Counter(fault.kind for fault in schedule(4, 1000, _CAST).faults)
    assert set(on_postgres) == set(Kind) - {Kind.DATABASE_LOCKED, Kind.FARM_DISK_FULL}
    on_sqlite = Cast(farms=1, agents=2, phones=3, database="sqlite")
    found = {fault.kind for fault in schedule(4, 1000, on_sqlite).faults}
    assert found == set(Kind) - {Kind.BACKENDS_TERMINATED}


def test_orders_of_all_kinds_are_given_as_long_as_faults_happen() -> None:
    drawn = schedule(5, 1000, _CAST)
    assert {demand.order for demand in drawn.demands} == set(Order)
    assert drawn.demands[-1].at_s <= drawn.faults[-1].at_s


def test_every_ailment_is_one_that_virtual_phones_have() -> None:
    for failure_mode in AILMENTS.values():
        assert parse_faults(failure_mode) != Faults()


def _end_s(fault: Fault) -> float:
    return fault.at_s + fault.lasts_s
