"""Which calls of agents are noted together, because there is nothing in them, and what that leaves out."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from farm.api.state.heartbeat_batch import HeartbeatBatch
from farm.core.base.ids import DeviceId
from farm.core.devices.condition import Condition
from farm.core.devices.device import DeviceFacts, Health, Presence
from farm.core.errors import FarmBusy
from farm.core.upkeep.device_action import DeviceActionKind
from farm.database.transaction import bind_tx
from farm.services.agents.heartbeats import ExchangeCall, find_still_idle, record_idle_heartbeats
from farm.services.hosts.admin import retire_host
from farm.services.upkeep.device_actions import request_device_action
from farm.store.devices.transitions import move_health, raise_fence_to
from farm.wire.agents.protocol import Exchange, FullController
from farm.wire.documents.devices import OperatorRequest
from tests.support.farm.service_fixture import FarmRig, HostRig


def idle_host(farm: FarmRig) -> HostRig:
    """A host with two good phones that have nothing to do."""
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    for name in ("phone-1", "phone-2"):
        host.plug_in(name)
    host.earn_health()
    for name, report in host.phones.items():
        host.phones[name] = report.model_copy(update={"facts": None})
    return host


def call_of(host: HostRig, **said: Any) -> ExchangeCall:
    """The host's next call, with all phones as they are."""
    host.seq += 1
    (row,) = host.farm.rows("SELECT credential_hash FROM hosts WHERE host_id = :host", host=host.host_id)
    values = {"seq": host.seq, "devices": tuple(host.phones.values()), **said}
    return ExchangeCall(
        host_id=host.host_id,
        session_id=host.session_id,
        credential_hash=row["credential_hash"],
        exchange=Exchange(**values),
    )


def note(farm: FarmRig, *calls: ExchangeCall) -> frozenset[ExchangeCall]:
    return farm.write(bind_tx(record_idle_heartbeats, now=farm.clock.now()), calls)


def beat(farm: FarmRig, host: HostRig) -> tuple[int, object]:
    (row,) = farm.rows(
        "SELECT exchange_seq, heartbeat_at FROM sessions WHERE session_id = :session", session=host.session_id
    )
    return row["exchange_seq"], row["heartbeat_at"]


def seen(farm: FarmRig) -> tuple[list[dict[str, Any]], list[object]]:
    """The phones' rows, and when each was seen."""
    rows = farm.rows("SELECT * FROM devices ORDER BY device_id")
    return [{**row, "seen_at": None} for row in rows], [row["seen_at"] for row in rows]


def test_a_call_with_nothing_in_it_does_what_the_loop_call_does_of_it(farm: FarmRig) -> None:
    host = idle_host(farm)
    events = farm.rows("SELECT event_id FROM events")
    phones, seen_at = seen(farm)
    farm.clock.advance(10)
    call = call_of(host)
    assert note(farm, call) == {call}
    noted = seen(farm), beat(farm, host)
    assert noted[0][0] == phones
    assert all(new > old for new, old in zip(noted[0][1], seen_at, strict=True))
    again = call_of(host)
    host.call(again.exchange)
    assert (seen(farm), beat(farm, host)) == (noted[0], (again.exchange.seq, noted[1][1]))
    assert farm.rows("SELECT event_id FROM events") == events


def test_calls_of_many_hosts_are_noted_apart_from_those_with_something_in_them(farm: FarmRig) -> None:
    idle, empty, busy = idle_host(farm), farm.host("bench-2"), farm.host("bench-3")
    pressed, damaged = farm.host("bench-4"), farm.host("bench-5")
    full = FullController(controller="0000:00:14.0", message="no slot is left")
    calls = [call_of(idle), call_of(empty), call_of(busy, full_controllers=(full,))]
    calls.append(call_of(pressed, pressure="the disk is full"))
    calls.append(call_of(damaged, damaged_files="spool/7.unreadable"))
    before = beat(farm, busy)
    assert note(farm, *calls) == {calls[0], calls[1]}
    assert [beat(farm, host)[0] for host in (idle, empty)] == [idle.seq, empty.seq]
    assert beat(farm, busy) == before


@pytest.mark.invariant("I3", "I11")
def test_of_a_sessions_calls_only_one_that_is_newer_than_all_is_noted(farm: FarmRig) -> None:
    host = idle_host(farm)
    older, newer = call_of(host), call_of(host)
    assert note(farm, newer, older) == {newer}
    assert note(farm, older) == note(farm, newer) == frozenset()
    assert beat(farm, host)[0] == newer.exchange.seq


def other_serial(host: HostRig) -> None:
    change(host, serial="usb-2")


def another_condition(host: HostRig) -> None:
    change(host, condition=Condition(taken_at=host.farm.clock.now(), battery_level_pct=40))


def facts(host: HostRig) -> None:
    change(host, facts=DeviceFacts(serialno="phone-1", device_model="other", work_root="/tmp/work"))


def went_offline(host: HostRig) -> None:
    change(host, presence=Presence.OFFLINE, detail="the probe failed")


def cannot_be_cleaned(host: HostRig) -> None:
    change(host, detail="something on it cannot be killed")


def knows_a_higher_token(host: HostRig) -> None:
    change(host, known_fence=1000)


def is_unplugged(host: HostRig) -> None:
    del host.phones["phone-1"]


def a_new_phone(host: HostRig) -> None:
    host.plug_in("phone-3")


def jobs_are_queued(host: HostRig) -> None:
    host.farm.submit()


def an_errand_is_asked(host: HostRig) -> None:
    host.farm.write(
        bind_tx(request_device_action, now=host.farm.clock.now()),
        "phone-1",
        DeviceActionKind.IDENTIFY,
        OperatorRequest(by="kim"),
    )


def is_retired(host: HostRig) -> None:
    host.farm.write(bind_tx(retire_host, now=host.farm.clock.now()), host.host_id, OperatorRequest(by="kim"))


def was_silent(host: HostRig) -> None:
    host.farm.clock.advance(90)
    host.farm.reap()


def is_fenced(host: HostRig) -> None:
    before = host.session_id
    host.restart()
    host.session_id, host.seq = before, 1000


def was_under_pressure(host: HostRig) -> None:
    call = call_of(host, pressure="the disk is full")
    host.call(call.exchange)


def had_a_full_controller(host: HostRig) -> None:
    full = FullController(controller="0000:00:14.0", message="no slot is left")
    call = call_of(host, full_controllers=(full,))
    host.call(call.exchange)


def is_not_clean(host: HostRig) -> None:
    host.farm.write(
        bind_tx(raise_fence_to, now=host.farm.clock.now()), DeviceId("phone-1"), 100, cause="a test"
    )


def is_of_unknown_health(host: HostRig) -> None:
    host.farm.write(
        bind_tx(move_health, now=host.farm.clock.now()),
        DeviceId("phone-1"),
        sources=[Health.GOOD],
        to=Health.UNKNOWN,
        cause="a test",
    )


def change(host: HostRig, **values: Any) -> None:
    host.phones["phone-1"] = host.phones["phone-1"].model_copy(update=values)


_NEWS = [
    other_serial,
    another_condition,
    facts,
    went_offline,
    cannot_be_cleaned,
    knows_a_higher_token,
    is_unplugged,
    a_new_phone,
    jobs_are_queued,
    an_errand_is_asked,
    is_retired,
    was_silent,
    is_fenced,
    was_under_pressure,
    had_a_full_controller,
    is_not_clean,
    is_of_unknown_health,
]


@pytest.mark.parametrize("news", _NEWS, ids=lambda news: news.__name__)
def test_a_call_in_which_there_is_something_is_left_to_the_loop_call(
    farm: FarmRig, news: Callable[[HostRig], None]
) -> None:
    host = idle_host(farm)
    quiet = call_of(host)
    assert note(farm, quiet) == {quiet}
    news(host)
    before = beat(farm, host), farm.rows("SELECT * FROM devices ORDER BY device_id")
    assert note(farm, call_of(host)) == frozenset()
    assert (beat(farm, host), farm.rows("SELECT * FROM devices ORDER BY device_id")) == before


@pytest.mark.parametrize(
    "news", [jobs_are_queued, an_errand_is_asked, is_retired], ids=lambda news: news.__name__
)
def test_a_call_that_was_noted_is_looked_at_again_when_there_is_something_to_do(
    farm: FarmRig, news: Callable[[HostRig], None]
) -> None:
    host = idle_host(farm)
    call = call_of(host)
    note(farm, call)
    assert farm.read(find_still_idle, [call]) == {call}
    news(host)
    assert farm.read(find_still_idle, [call]) == frozenset()


@pytest.mark.invariant("I19")
def test_who_shows_another_credential_than_the_hosts_is_not_noted(farm: FarmRig) -> None:
    host, other = idle_host(farm), farm.host("bench-2")
    own, others = call_of(host), call_of(other)
    stolen = ExchangeCall(
        host_id=host.host_id,
        session_id=host.session_id,
        credential_hash=others.credential_hash,
        exchange=own.exchange,
    )
    elsewhere = ExchangeCall(
        host_id=other.host_id,
        session_id=host.session_id,
        credential_hash=others.credential_hash,
        exchange=own.exchange,
    )
    before = beat(farm, host)
    assert note(farm, stolen) == note(farm, elsewhere) == frozenset()
    assert beat(farm, host) == before


def test_a_phone_at_work_makes_a_call_none_with_nothing_in_it(farm: FarmRig) -> None:
    host = idle_host(farm)
    farm.submit(rounds=5)
    assert host.exchange().assignments
    # Its agent forgot the run: the loop call has to end it.
    assert note(farm, call_of(host)) == frozenset()


def test_a_host_is_called_upon_after_a_restore(farm: FarmRig) -> None:
    host = idle_host(farm)
    assert note(farm, call_of(host, database_epoch="of before")) == frozenset()


def test_calls_that_are_noted_when_the_farm_stops_leave_nothing_under_way(farm: FarmRig) -> None:
    call = call_of(idle_host(farm))

    async def stopped() -> tuple[list[object], int]:
        heartbeats = HeartbeatBatch(farm.database, farm.clock)
        asked = asyncio.create_task(heartbeats.notes(call))
        # It is among those that wait for each other; then its caller goes away.
        await asyncio.sleep(0)
        asked.cancel()
        ended = await asyncio.gather(asked, return_exceptions=True)
        await heartbeats.aclose()
        with pytest.raises(FarmBusy):
            await heartbeats.notes(call)
        return ended, len(asyncio.all_tasks())

    (ended,), left = asyncio.run(stopped())
    assert isinstance(ended, asyncio.CancelledError)
    assert left == 1
