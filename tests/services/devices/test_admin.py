"""What operators decide about phones, and what comes of it."""

import pytest
from pydantic import TypeAdapter

from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Presence
from farm.core.errors import Conflict, InvalidInput, NotFound
from farm.database.transaction import bind_tx
from farm.services.checks.device_detail import device_detail
from farm.services.devices.admin import (
    cancel_jobs_of_retired,
    change_admin,
    change_label,
    change_tags,
    retire,
    retirement_plan,
)
from farm.services.devices.views import device_id_named, device_named
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.wire.documents.devices import DeviceChange, DeviceDetail, LabelRequest, OperatorRequest, TagRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phone

ASKED = OperatorRequest(by="anna", reason="because")


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    """A host with two healthy phones."""
    return farm.healthy_host("phone-1", "phone-2")


def admin(farm: FarmRig, event: AdminEvent, name: str = "phone-1") -> DeviceChange:
    return farm.write(bind_tx(change_admin, now=farm.clock.now()), name, event, ASKED)


def retired(farm: FarmRig, name: str = "phone-1") -> DeviceChange:
    return farm.write(bind_tx(retire, now=farm.clock.now()), name, ASKED)


def detail(farm: FarmRig, name: str = "phone-1") -> DeviceDetail:
    return farm.read(device_detail, name)


def label(farm: FarmRig, name: str, new: str | None) -> DeviceChange:
    return farm.write(
        bind_tx(change_label, now=farm.clock.now()),
        name,
        LabelRequest(by="anna", label=new, reason="it stands first"),
    )


def tags(farm: FarmRig, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> DeviceChange:
    request = TagRequest(by="anna", add=add, remove=remove)
    return farm.write(bind_tx(change_tags, now=farm.clock.now()), "phone-1", request)


def outcomes(farm: FarmRig, device_id: str) -> list[str]:
    sql = "SELECT COALESCE(outcome, state) o FROM jobs WHERE kind = 'benchmark' AND device_id = :id"
    return [row["o"] for row in farm.rows(sql, id=device_id)]


def test_a_new_phone_waits_to_be_admitted_and_is_checked_at_once_then(farm: FarmRig) -> None:
    host = farm.host(auto_admit=False)
    host.plug_in("phone-1")
    assert host.exchange().assignments == ()
    view = detail(farm)
    assert (view.blocked_by[0], view.advice) == ("pending", "farm device admit phone-1")
    assert admin(farm, AdminEvent.ADMITTED).changed
    assert len(host.exchange().assignments) == 1


@pytest.mark.invariant("I14")
def test_a_cordoned_phone_gets_no_work_until_it_is_uncordoned(farm: FarmRig, host: HostRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    farm.submit(devices={"device_id": "phone-1"}, rounds=2)
    admin(farm, AdminEvent.CORDONED)
    assert host.exchange().assignments == ()
    assert (detail(farm).why, detail(farm).advice) == ("because", "farm device uncordon phone-1")
    admin(farm, AdminEvent.UNCORDONED)
    assert host.run() == 4


def test_what_is_so_already_is_said_and_leaves_no_event(farm: FarmRig, host: HostRig) -> None:
    admin(farm, AdminEvent.CORDONED)
    before = farm.rows("SELECT count(*) n FROM events")
    again = admin(farm, AdminEvent.CORDONED)
    assert (again.changed, again.message) == (False, "phone-1 is cordoned already")
    assert farm.rows("SELECT count(*) n FROM events") == before


def test_what_cannot_follow_is_refused_with_the_present_state(farm: FarmRig, host: HostRig) -> None:
    retired(farm)
    with pytest.raises(Conflict, match="phone-1 is retired"):
        admin(farm, AdminEvent.CORDONED)


@pytest.mark.invariant("I17")
def test_of_two_operators_with_one_view_of_a_phone_one_moves_it(farm: FarmRig, host: HostRig) -> None:
    seen = farm.read(device_named, "phone-1")
    moves = [
        farm.write(
            bind_tx(device_transitions.move_admin, now=farm.clock.now(), actor="user:anna"),
            seen,
            event,
            cause=None,
        )
        for event in (AdminEvent.CORDONED, AdminEvent.RETIRED)
    ]
    assert moves == ["cordoned", None]


@pytest.mark.invariant("I17")
def test_every_decision_leaves_its_actor_and_reason(farm: FarmRig, host: HostRig) -> None:
    admin(farm, AdminEvent.CORDONED)
    label(farm, "phone-1", "bench-a")
    tags(farm, ("rooted",))
    events = [(event.kind, event.actor, event.cause) for event in detail(farm).events[:3]]
    assert events == [
        ("device_tagged", "user:anna", "from none to rooted"),
        ("device_labelled", "user:anna", "from none to bench-a: it stands first"),
        ("device_cordoned", "user:anna", "because"),
    ]


def test_retiring_cancels_what_waits_and_lets_the_run_end(farm: FarmRig, host: HostRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    farm.submit(devices={"device_id": "phone-1"}, rounds=2)
    matrix_id = farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    (running,) = host.exchange().assignments
    plan = farm.read(retirement_plan, "phone-1")
    assert (plan.queued_jobs, matrix_id in plan.matrices) == (5, True)
    said = retired(farm).message
    assert (
        said
        == f"phone-1 is retired now; 5 queued jobs were cancelled, and job {running.job_id} runs to its end"
    )
    host.report(running.attempt_id, good_evidence(running))
    assert sorted(outcomes(farm, "phone-1")) == ["cancelled"] * 5 + ["succeeded"]
    assert farm.matrix(matrix_id).finished_at is not None


@pytest.mark.invariant("I13")
def test_another_try_on_a_retired_phone_is_cancelled_by_the_next_tick(farm: FarmRig, host: HostRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    host.exchange()
    retired(farm)
    host.restart()  # gives the attempt back, so that its job is queued again
    assert sorted(outcomes(farm, "phone-1")) == ["cancelled", "queued"]
    farm.write(bind_tx(cancel_jobs_of_retired, now=farm.clock.now()))
    assert outcomes(farm, "phone-1") == ["cancelled", "cancelled"]


def test_a_retired_phone_that_is_plugged_in_again_stays_retired(farm: FarmRig, host: HostRig) -> None:
    retired(farm)
    host.phones["phone-1"] = phone("phone-1", presence=Presence.OFFLINE)
    host.exchange()
    host.plug_in("phone-1")
    assert host.exchange().assignments == ()
    assert detail(farm).blocked_by[0] == "retired"
    assert retired(farm).changed is False
    admin(farm, AdminEvent.ADMITTED)
    assert detail(farm).admin == "active"


def test_a_phone_is_found_by_id_label_and_unique_beginning(farm: FarmRig, host: HostRig) -> None:
    label(farm, "phone-2", "the second")
    for name in ("phone-2", "the second", "the"):
        assert farm.read(device_named, name).device_id == "phone-2"
    with pytest.raises(InvalidInput, match="phone-1, the second"):
        farm.read(device_named, "phone")
    with pytest.raises(NotFound) as unknown:
        farm.read(device_named, "tablet")
    assert unknown.value.hint == "known here: phone-1, the second"
    with pytest.raises(NotFound):
        farm.read(device_named, "")


def test_a_phone_named_like_the_beginning_of_another_is_still_found(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-10")
    host.exchange()
    assert farm.read(device_named, "phone-1").device_id == "phone-1"


def test_an_id_counts_where_another_phone_was_labelled_so_before(farm: FarmRig, host: HostRig) -> None:
    label(farm, "phone-1", "phone-3")
    assert farm.read(device_id_named, "phone-3") == "phone-1"
    host.plug_in("phone-3")
    host.exchange()
    assert farm.read(device_id_named, "phone-3") == "phone-3"


def test_a_label_names_one_phone_and_can_be_taken_away(farm: FarmRig, host: HostRig) -> None:
    assert label(farm, "phone-1", "bench-a").message == "phone-1 has the label 'bench-a' now"
    assert label(farm, "bench-a", "bench-a").changed is False
    for taken in ("bench-a", "phone-1"):
        with pytest.raises(Conflict, match="phone-1 already"):
            label(farm, "phone-2", taken)
    label(farm, "bench-a", None)
    assert detail(farm).label is None
    assert label(farm, "phone-2", "bench-a").changed


def test_tags_are_added_and_removed_and_sorted(farm: FarmRig, host: HostRig) -> None:
    assert tags(farm, ("rooted", "camera")).message == "phone-1 has the tags camera, rooted now"
    assert tags(farm, ("camera",)).changed is False
    assert tags(farm, ("fast",), ("rooted", "old")).device.tags == ("camera", "fast")
    assert tags(farm, (), ("camera", "fast")).message == "phone-1 has no tags now"
    tags(farm, tuple(f"t{number}" for number in range(32)))
    with pytest.raises(InvalidInput, match="33 tags, 32 at most"):
        tags(farm, ("one-more",))


@pytest.mark.parametrize("bad", ["", " x", "a/b", "a\n", "x" * 65, "-a"])
def test_a_label_that_no_one_could_type_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="label"):
        LabelRequest(by="anna", label=bad)


def test_since_when_and_why_a_phone_is_away_is_known(farm: FarmRig, host: HostRig) -> None:
    farm.clock.advance(60)
    gone = host.phones["phone-1"].model_copy(
        update={"presence": Presence.UNAUTHORIZED, "detail": "adb state: unauthorized"}
    )
    host.phones["phone-1"] = gone
    host.exchange()
    view = detail(farm)
    assert (view.blocked_by[0], view.since, view.why) == (
        "not_online",
        farm.clock.now(),
        "adb state: unauthorized",
    )
    assert view.advice == "unlock it and allow USB debugging, always, for the key of this host"


def test_a_phone_is_shown_with_its_queue_and_what_ran_on_it(farm: FarmRig, host: HostRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    farm.submit(devices={"device_id": "phone-1"}, rounds=2)
    host.exchange()
    view = detail(farm)
    assert (view.queued_jobs, view.job_id, view.blocked_by[0]) == (3, view.attempts[0].job_id, "busy")
    assert [attempt.kind for attempt in view.attempts] == ["benchmark", "check"]
    assert TypeAdapter(DeviceDetail).validate_json(view.model_dump_json()) == view
    assert view.facts == farm.read(devices.get_device, "phone-1").facts
