"""Sweeps that nobody asked for, under clocks that jump."""

from datetime import timedelta

import pytest

from farm.core.operations.retention import StorageRules
from farm.services.files.sweeper import Sweeper
from tests.support.farm.service_fixture import FarmRig, HostRig

_DAYS_S = timedelta(days=1).total_seconds()


@pytest.fixture
def sweeper(farm: FarmRig, host: HostRig) -> Sweeper:
    """Of a farm that has the output of two checks."""
    rules = StorageRules(evidence_keep_days=30, blobs_limit_bytes=0)
    return Sweeper(farm.database, farm.blobs, rules, farm.clock)


@pytest.mark.invariant("I10")
@pytest.mark.fault(50)
def test_a_clock_that_jumped_ahead_lets_no_output_go(farm: FarmRig, sweeper: Sweeper) -> None:
    farm.clock.jump(365 * _DAYS_S)
    swept = sweeper()
    assert swept.reports == 0
    assert swept.artifacts == 2, "what can be sent again goes all the same"


def test_a_clock_that_was_put_right_lets_output_go_in_its_time(farm: FarmRig, sweeper: Sweeper) -> None:
    farm.clock.jump(365 * _DAYS_S)
    sweeper()
    farm.clock.jump(-365 * _DAYS_S)
    farm.clock.advance(31 * _DAYS_S)
    assert sweeper().reports == 2


def test_small_corrections_of_the_clock_change_nothing(farm: FarmRig, sweeper: Sweeper) -> None:
    farm.clock.jump(-30.0)
    farm.clock.advance(31 * _DAYS_S)
    farm.clock.jump(60.0)
    assert sweeper().reports == 2
