"""Which readings of evidence become events, and that none is lost where the database cannot be written."""

import pytest
import sqlalchemy as sa

from farm.core.errors import FarmBusy
from farm.core.operations.event import AccessEvent
from farm.core.operations.role import Caller, Role
from farm.database.tables import events
from farm.services.access import evidence_reads
from farm.services.access.evidence_reads import EvidenceReads
from tests.support.farm.service_fixture import FarmRig

ANN = Caller(name="ann", role=Role.VIEWER, is_authenticated=True)


def recorded(farm: FarmRig) -> list[str]:
    query = (
        sa.select(events.c.subject_id)
        .where(events.c.kind == AccessEvent.EVIDENCE_READ.value)
        .order_by(events.c.event_id)
    )
    return [str(each) for each in farm.read(lambda connection: connection.execute(query)).scalars()]


@pytest.mark.parametrize(("seconds", "times"), [(3599, 1), (3600, 2)])
def test_a_reading_is_recorded_again_after_an_hour(farm: FarmRig, seconds: int, times: int) -> None:
    reads = EvidenceReads(farm.database, farm.clock)
    reads.note(ANN, AccessEvent.EVIDENCE_READ, 7)
    reads()
    farm.clock.advance(seconds)
    reads.note(ANN, AccessEvent.EVIDENCE_READ, 7)
    reads()
    assert recorded(farm) == ["7"] * times


def test_a_caller_without_a_token_is_not_recorded(farm: FarmRig) -> None:
    reads = EvidenceReads(farm.database, farm.clock)
    reads.note(Caller(name="ann", role=Role.ADMIN, is_authenticated=False), AccessEvent.EVIDENCE_READ, 7)
    reads()
    assert recorded(farm) == []


def test_what_is_remembered_is_bounded(farm: FarmRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_reads, "MAX_REMEMBERED", 2)
    reads = EvidenceReads(farm.database, farm.clock)
    for attempt_id in (1, 2, 3, 3, 2, 1):
        reads.note(ANN, AccessEvent.EVIDENCE_READ, attempt_id)
    reads()
    # The first one was forgotten, and is recorded once more.
    assert recorded(farm) == ["1", "2", "3", "1"]


def test_readings_that_could_not_be_recorded_are_recorded_later(
    farm: FarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = EvidenceReads(farm.database, farm.clock)
    reads.note(ANN, AccessEvent.EVIDENCE_READ, 7)

    def fails(*_: object) -> None:
        raise FarmBusy("locked")

    with monkeypatch.context() as broken:
        broken.setattr(farm.database, "write", fails)
        with pytest.raises(FarmBusy):
            reads()
    reads.note(ANN, AccessEvent.EVIDENCE_READ, 8)
    reads()
    assert recorded(farm) == ["7", "8"]
