"""An alarm is raised once while it is open; what the table refuses for another reason is an error."""

from typing import cast

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.database.engine import Database
from farm.database.transaction import Tx
from farm.store.operations.alarms import add_alarm, clear_alarm, open_alarms
from tests.support.database.sample_rows import NOW


def raise_alarm(connection: Connection, kind: AlarmKind) -> bool:
    device = AlarmSubject.DEVICE
    alarm = DueAlarm(kind=kind, subject=device, subject_id="phone-1", message="it is away", hint="look")
    return add_alarm(Tx(connection, NOW), alarm)


@pytest.mark.parametrize("kind", list(AlarmKind))
def test_every_kind_of_alarm_is_raised_once_until_it_is_cleared(filled: Database, kind: AlarmKind) -> None:
    assert [filled.write(raise_alarm, kind) for _ in range(2)] == [True, False]
    (alarm,) = filled.read(open_alarms)
    assert alarm.kind is kind
    filled.write(lambda connection: clear_alarm(Tx(connection, NOW), alarm, cause="it is back"))
    assert filled.write(raise_alarm, kind)


def test_a_kind_that_the_table_does_not_know_is_an_error_and_not_an_open_alarm(filled: Database) -> None:
    with pytest.raises(sa.exc.IntegrityError):
        filled.write(raise_alarm, cast(AlarmKind, "unknown"))
