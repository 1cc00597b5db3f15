"""An alarm is raised once while it is open; what the table refuses for another reason is an error."""

from datetime import datetime, timedelta
from functools import partial
from typing import cast

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.database.engine import Database
from farm.database.transaction import Tx
from farm.store.operations.alarms import add_alarm, clear_alarm, last_alarms, open_alarms
from tests.support.database.sample_rows import NOW


def raise_alarm(connection: Connection, kind: AlarmKind, *, at: datetime = NOW) -> bool:
    device = AlarmSubject.DEVICE
    alarm = DueAlarm(kind=kind, subject=device, subject_id="phone-1", message="it is away", hint="look")
    return add_alarm(Tx(connection, at), alarm)


@pytest.mark.parametrize("kind", list(AlarmKind))
def test_every_kind_of_alarm_is_raised_once_until_it_is_cleared(filled: Database, kind: AlarmKind) -> None:
    assert [filled.write(raise_alarm, kind) for _ in range(2)] == [True, False]
    (alarm,) = filled.read(open_alarms)
    assert alarm.kind is kind
    filled.write(lambda connection: clear_alarm(Tx(connection, NOW), alarm.key, cause="it is back"))
    assert filled.write(raise_alarm, kind)


def test_a_kind_that_the_table_does_not_know_is_an_error_and_not_an_open_alarm(filled: Database) -> None:
    with pytest.raises(sa.exc.IntegrityError):
        filled.write(raise_alarm, cast(AlarmKind, "unknown"))


def test_alarms_are_found_by_the_time_since_which_they_were_raised(filled: Database) -> None:
    early, late = list(AlarmKind)[:2]
    hour = timedelta(hours=1)
    for kind, at in ((early, NOW), (late, NOW + 2 * hour)):
        assert filled.write(partial(raise_alarm, kind=kind, at=at))
    for since, kinds in (
        (None, [early, late]),
        (NOW, [early, late]),
        (NOW + hour, [late]),
        (NOW + 3 * hour, []),
    ):
        found = filled.read(partial(open_alarms, since=since))
        assert [alarm.kind for alarm in found] == kinds
        found = filled.read(partial(last_alarms, since=since, limit=9))
        assert [alarm.kind for alarm in found] == kinds[::-1]
