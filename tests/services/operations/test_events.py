"""Events as people ask for them."""

import pytest

from farm.core.errors import InvalidInput, NotFound
from farm.core.operations.event import EventSubject
from farm.database.transaction import bind_tx
from farm.services.devices.admin import change_label
from farm.services.devices.reservations import reserve
from farm.services.operations.events import EventQuery, event_filter, last_page, next_page
from farm.store.operations.event_watermark import event_watermark
from farm.wire.documents.devices import LabelRequest, ReservationRequest
from farm.wire.documents.operations import EventPage
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence


def asked(farm: FarmRig, limit: int = 100, **words: str | int | None) -> EventPage:
    which = farm.read(bind_tx(event_filter, now=farm.clock.now()), EventQuery(**words))  # type: ignore[arg-type]
    return farm.read(last_page, which, until=farm.read(event_watermark).event_id, limit=limit)


def kinds(page: EventPage) -> list[str]:
    return [event.kind for event in page.events]


def test_a_phone_is_found_by_its_label_and_its_story_is_told_in_order(farm: FarmRig, host: HostRig) -> None:
    farm.write(bind_tx(change_label, now=farm.clock.now()), "phone-1", LabelRequest(by="ann", label="desk"))
    farm.write(
        bind_tx(reserve, now=farm.clock.now()),
        "phone-1",
        ReservationRequest(by="ann", for_s=60, reason="demo"),
    )
    page = asked(farm, subject="device:desk")
    assert {event.subject_id for event in page.events} == {"phone-1"}
    assert kinds(page)[0] == "device_found"
    assert kinds(page)[-2:] == ["device_labelled", "device_reserved"]
    assert [event.event_id for event in page.events] == sorted(event.event_id for event in page.events)


def test_the_story_of_a_job_has_its_attempts(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=1)
    first, _ = host.exchange().assignments
    host.report(first.attempt_id, good_evidence(first))
    assert kinds(asked(farm, subject=f"job:{first.job_id}")) == [
        "attempt_claimed",
        "job_claimed",
        "attempt_finished",
        "job_finished",
    ]


def test_the_story_of_a_host_has_its_sessions_and_no_others(farm: FarmRig, host: HostRig) -> None:
    farm.host("bench-2")
    host.restart()
    page = asked(farm, subject="host:bench-1")
    assert kinds(page)[-3:] == ["session_opened", "session_closed", "session_opened"]
    assert {event.subject for event in page.events} <= {"host", "session"}
    others = {event.event_id for event in asked(farm, subject="host:bench-2").events}
    assert others
    assert not others & {event.event_id for event in page.events}


def test_a_person_is_found_by_their_name(farm: FarmRig, host: HostRig) -> None:
    farm.write(bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by="ann", for_s=60))
    assert kinds(asked(farm, actor="ann")) == ["device_reserved"]
    assert kinds(asked(farm, actor="user:ann")) == ["device_reserved"]
    assert {event.actor for event in asked(farm, actor="agent:bench-1").events} == {"agent:bench-1"}


def test_a_span_leaves_out_what_was_before(farm: FarmRig, host: HostRig) -> None:
    farm.clock.advance(3600)
    farm.write(bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by="ann", for_s=60))
    assert kinds(asked(farm, since_s=60)) == ["device_reserved"]
    assert len(kinds(asked(farm, since_s=7200))) > 1


def test_pages_put_together_are_the_whole_log(farm: FarmRig, host: HostRig) -> None:
    until = farm.read(event_watermark).event_id
    which = farm.read(bind_tx(event_filter, now=farm.clock.now()), EventQuery())
    found, after = [], 0
    while page := farm.read(next_page, which, after=after, until=until, limit=3):
        found += page.events
        after = page.next
        if after == until:
            break
    assert tuple(found) == asked(farm, limit=10_000).events


def test_what_came_after_a_page_is_not_missed_though_none_of_it_was_asked_for(
    farm: FarmRig, host: HostRig
) -> None:
    which = farm.read(bind_tx(event_filter, now=farm.clock.now()), EventQuery(kind="device_reserved"))
    until = farm.read(event_watermark).event_id
    page = farm.read(next_page, which, after=0, until=until, limit=100)
    assert (page.events, page.next) == ((), until)
    farm.write(bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by="ann", for_s=60))
    later = farm.read(event_watermark).event_id
    assert kinds(farm.read(next_page, which, after=page.next, until=later, limit=100)) == ["device_reserved"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"kind": "device_reserve"}, "did you mean `device_reserved`"),
        ({"subject": "phone:x"}, "write KIND:ID"),
        ({"subject": "device"}, "write KIND:ID"),
        ({"subject": "job:seven"}, "write job:17"),
        ({"subject": f"job:{'9' * 40}"}, "write job:17"),
        ({"subject": f"job:{'9' * 5000}"}, "write job:17"),
    ],
)
def test_what_names_nothing_is_refused_with_what_would(
    farm: FarmRig, words: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        asked(farm, **words)
    assert said in caught.value.hint


def test_a_phone_no_one_knows_is_not_found(farm: FarmRig) -> None:
    with pytest.raises(NotFound):
        asked(farm, subject="device:nowhere")


def test_a_number_is_found_however_it_is_written(farm: FarmRig) -> None:
    which = farm.read(bind_tx(event_filter, now=farm.clock.now()), EventQuery(subject="job:007"))
    assert which.about == (EventSubject.JOB, "7")
