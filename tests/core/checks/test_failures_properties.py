"""Several phones of a host in trouble together are the host's trouble; one alone, or few of many, are not."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import DeviceId
from farm.core.checks.failures import (
    MAX_DURATION,
    QUIET_AFTER,
    WINDOW,
    DeviceFailure,
    IncidentProgress,
    became_unreachable,
    correlated_failures,
    is_over,
    may_be_host_caused,
)
from farm.core.devices.device import Presence
from farm.core.errors import Blame

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
IDS = st.integers(0, 15).map(lambda number: DeviceId(f"phone-{number}"))
TROUBLES = st.lists(
    st.builds(
        DeviceFailure, device_id=IDS, at=st.integers(-30, 200).map(lambda s: NOW - timedelta(seconds=s))
    )
)
ONLINE = st.sets(IDS)


@given(troubles=TROUBLES, online=ONLINE)
@pytest.mark.invariant("I15")
@pytest.mark.fault(19)
def test_an_incident_has_two_phones_and_half_of_all_that_were_there(
    troubles: list[DeviceFailure], online: set[DeviceId]
) -> None:
    hit = correlated_failures(troubles, online, now=NOW)
    recent = {each.device_id for each in troubles if NOW - WINDOW <= each.at <= NOW}
    assert hit in (frozenset(), recent)
    assert bool(hit) == (len(recent) >= 2 and 2 * len(recent) >= len(recent | online))


@given(troubles=TROUBLES, online=ONLINE)
def test_the_order_in_which_phones_fail_does_not_matter(
    troubles: list[DeviceFailure], online: set[DeviceId]
) -> None:
    assert correlated_failures(reversed(troubles), online, now=NOW) == correlated_failures(
        troubles, online, now=NOW
    )


@given(troubles=TROUBLES)
@pytest.mark.invariant("I15")
def test_a_host_of_one_phone_has_no_incidents(troubles: list[DeviceFailure]) -> None:
    alone = [each for each in troubles if each.device_id == "phone-1"]
    assert correlated_failures(alone, {DeviceId("phone-1")}, now=NOW) == frozenset()


def test_a_hub_of_seven_that_drops_is_an_incident_also_among_others() -> None:
    seven = [DeviceFailure(device_id=DeviceId(f"p{n}"), at=NOW) for n in range(7)]
    others = [DeviceId(f"q{n}") for n in range(8)]
    assert len(correlated_failures(seven, others[:7], now=NOW)) == 7
    assert correlated_failures(seven, others, now=NOW) == frozenset()


@pytest.mark.parametrize(
    ("blame", "code", "may_be"),
    [
        (Blame.DEVICE, "device.lost", True),
        (Blame.DEVICE, "device.offline", True),
        (Blame.DEVICE, "device.rebooted", False),
        (Blame.DEVICE, "device.adbd_restarted", False),
        (Blame.VARIANT, "harness.crashed", False),
        (None, None, False),
    ],
)
def test_a_phone_that_starts_again_did_that_itself(
    blame: Blame | None, code: str | None, may_be: bool
) -> None:
    assert may_be_host_caused(blame, code) == may_be


def test_a_phone_that_boots_has_not_gone_away_by_its_host() -> None:
    gone = {after for after in Presence if became_unreachable(Presence.ONLINE, after)}
    assert gone == set(Presence) - {Presence.ONLINE, Presence.BOOTING}
    assert not any(became_unreachable(Presence.ABSENT, after) for after in Presence)


@pytest.mark.parametrize(
    ("calm", "away", "over"),
    [
        (timedelta(0), 0, False),
        (WINDOW, 0, True),
        (WINDOW, 1, False),
        (QUIET_AFTER, 3, True),
    ],
)
def test_an_incident_lasts_until_its_phones_are_back_or_it_is_quiet(
    calm: timedelta, away: int, over: bool
) -> None:
    assert (
        is_over(IncidentProgress(began_at=NOW - calm, last_failure_at=NOW - calm, away=away), now=NOW) == over
    )


def test_a_phone_that_comes_and_goes_for_ever_keeps_no_incident_open() -> None:
    just_begun = IncidentProgress(began_at=NOW, last_failure_at=NOW, away=1)
    old = IncidentProgress(began_at=NOW - MAX_DURATION, last_failure_at=NOW, away=1)
    assert (is_over(just_begun, now=NOW), is_over(old, now=NOW)) == (False, True)
