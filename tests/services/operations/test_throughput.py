"""Events of a kind are counted by time."""

from datetime import timedelta

import sqlalchemy as sa

from farm.core.jobs.job import JobEvent
from farm.database.tables import events
from farm.store.operations.recent_events import count_between
from tests.support.farm.service_fixture import FarmRig


def test_ended_jobs_are_counted_between_times(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host("phone-1")
    for _ in range(3):
        farm.submit()
        host.run()
        farm.clock.advance(3600)
    query = sa.select(events.c.at).where(events.c.kind == JobEvent.FINISHED.value)
    ends = list(farm.read(lambda connection: connection.execute(query).scalars().all()))
    now = farm.clock.now()
    times = [now - timedelta(minutes=minutes) for minutes in (300, 240, 170, 100, 62, 10, 0)]
    later = [*times[1:], now + timedelta(days=1)]
    expected = [sum(begin <= at < end for at in ends) for begin, end in zip(times, later, strict=True)]
    assert sum(expected) == len(ends)
    assert max(expected) > 0
    assert farm.read(count_between, JobEvent.FINISHED, times) == expected
