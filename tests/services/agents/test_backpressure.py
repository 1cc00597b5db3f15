"""A host that says why it takes no new work gets none, and keeps what it has in hand."""

import pytest

from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import AttemptReport, Exchange, ExchangeAnswer
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phase


def pressed(host: HostRig, *attempts: AttemptReport) -> ExchangeAnswer:
    """One exchange of a host without room."""
    host.seq += 1
    devices = tuple(host.phones.values())
    said = Exchange(seq=host.seq, devices=devices, attempts=attempts, pressure="the disk is full")
    return host.call(said).answer


@pytest.mark.fault(18, 29)
def test_a_host_under_pressure_keeps_what_it_has_and_gets_no_new_work(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    assert pressed(host).assignments == ()
    (running, *others) = host.exchange().assignments
    measuring = [phase(each, AttemptState.MEASURING) for each in (running, *others)]
    listed = pressed(host, *measuring).assignments
    assert [each.attempt_id for each in listed] == [each.attempt_id for each in (running, *others)]
    assert host.report(running.attempt_id, good_evidence(running)).counted
    host.clean(running)
    assert len(pressed(host, *measuring[1:]).assignments) == len(others)
    assert len(host.exchange(measuring[1:]).assignments) == len(others) + 1
