"""Usage of devices: every moment of a known time has one state, and the states add up to it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import HostState
from farm.core.errors import InvalidInput
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.job import JobKind
from farm.core.jobs.retry import JOB_DEFERRED
from farm.core.operations.usage import (
    AttemptTimes,
    Period,
    UsageChange,
    UsageState,
    UsageTrack,
    action_changes,
    attempt_changes,
    percentages,
    usage,
    week_before,
    week_named,
    week_of,
)

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
HOUR = Period(begin=MONDAY, end=MONDAY + timedelta(hours=1))
FREE = (
    (UsageTrack.PRESENCE, Presence.ONLINE),
    (UsageTrack.HEALTH, Health.GOOD),
    (UsageTrack.ADMIN, Admin.ACTIVE),
)


def at(minute: float) -> datetime:
    return MONDAY + timedelta(minutes=minute)


def change(minute: float, track: UsageTrack, value: str | None) -> UsageChange:
    return UsageChange(at=at(minute), track=track, value=value)


#: A healthy device of the pool, since before the period.
HEALTHY = tuple(change(-60, track, value) for track, value in FREE)


def attempt(
    claimed: float,
    *,
    unfit: float | None = None,
    measuring: float | None = None,
    finished: float | None = None,
    kind: JobKind = JobKind.BENCHMARK,
    state: AttemptState = AttemptState.FINISHED,
    code: str | None = None,
) -> AttemptTimes:
    return AttemptTimes(
        kind=kind,
        state=state,
        code=code,
        claimed_at=at(claimed),
        unfit_at=None if unfit is None else at(unfit),
        measuring_at=None if measuring is None else at(measuring),
        finished_at=None if finished is None else at(finished),
    )


def minutes(
    changes: Iterable[UsageChange] = (), attempts: Sequence[AttemptTimes] = (), period: Period = HOUR
) -> dict[str, float]:
    """The minutes of each state of a healthy device that these happen to, states without any left out."""
    spent = usage(period, [*HEALTHY, *changes, *attempt_changes(attempts)])
    return {state.value: time.total_seconds() / 60 for state, time in spent.items() if time}


def test_a_device_without_a_job_waits() -> None:
    assert minutes() == {"waiting": 60}


def test_a_run_is_prepared_waits_until_the_device_is_fit_and_measures() -> None:
    run = attempt(10, unfit=12, measuring=20, finished=45)
    assert minutes(attempts=[run]) == {"preparing": 2, "cooling": 8, "measuring": 25, "waiting": 25}


def test_a_check_is_checking_from_its_claim_on() -> None:
    run = attempt(10, unfit=12, measuring=20, finished=45, kind=JobKind.CHECK)
    assert minutes(attempts=[run]) == {"checking": 35, "waiting": 25}


def test_the_pause_of_a_deferred_job_is_cooling() -> None:
    deferred = attempt(10, unfit=11, finished=12, state=AttemptState.RETURNED, code=JOB_DEFERRED)
    again = attempt(14, measuring=15, finished=16)
    assert minutes(attempts=[deferred, again]) == {
        "preparing": 2,
        "cooling": 3,
        "measuring": 1,
        "waiting": 54,
    }
    # Without another claim the job is gone: it would have been claimed again after the longest pause.
    assert minutes(attempts=[deferred]) == {"preparing": 1, "cooling": 4, "waiting": 55}


def test_a_run_of_which_only_the_report_came_counts_as_measuring() -> None:
    assert minutes(attempts=[attempt(10, finished=30)]) == {"measuring": 20, "waiting": 40}


def test_a_run_that_began_before_the_week_and_one_that_goes_on_after_it_count_in_part() -> None:
    runs = [attempt(-30, measuring=-20, finished=15), attempt(50, measuring=55)]
    assert minutes(attempts=runs) == {"measuring": 20, "preparing": 5, "waiting": 35}


def test_an_attempt_ends_at_the_latest_when_the_next_one_is_claimed() -> None:
    # The first was lost, and its late report settled it long after.
    runs = [attempt(0, measuring=5, finished=50), attempt(20, measuring=25, finished=40)]
    assert minutes(attempts=runs) == {"preparing": 10, "measuring": 30, "waiting": 20}


def test_a_device_that_cannot_be_reached_is_away_whatever_it_runs() -> None:
    gone = [
        change(20, UsageTrack.PRESENCE, Presence.OFFLINE),
        change(30, UsageTrack.PRESENCE, Presence.ONLINE),
    ]
    run = attempt(10, measuring=10, finished=40)
    assert minutes(gone, [run]) == {"measuring": 20, "away": 10, "waiting": 30}


@pytest.mark.parametrize(
    ("track", "value"),
    [
        (UsageTrack.RESERVATION, "reserved"),
        (UsageTrack.ADMIN, Admin.CORDONED),
        (UsageTrack.ADMIN, Admin.PENDING),
        (UsageTrack.HOST, HostState.DRAINING),
        (UsageTrack.HEALTH, Health.BAD),
    ],
)
def test_a_device_out_of_the_pool_is_away_once_its_run_has_ended(track: UsageTrack, value: str) -> None:
    run = attempt(10, measuring=10, finished=40)
    assert minutes([change(20, track, value)], [run]) == {"waiting": 10, "measuring": 30, "away": 20}


def test_a_device_without_health_or_with_an_open_action_is_being_checked() -> None:
    unknown = [change(10, UsageTrack.HEALTH, Health.UNKNOWN), change(20, UsageTrack.HEALTH, Health.GOOD)]
    actions = [
        Period(begin=at(30), end=at(34)),
        Period(begin=at(32), end=at(36)),
        Period(begin=at(50), end=at(51)),
    ]
    assert minutes([*unknown, *action_changes(actions)]) == {"checking": 17, "waiting": 43}


def test_the_time_of_a_retired_device_does_not_count() -> None:
    assert minutes([change(15, UsageTrack.ADMIN, Admin.RETIRED)]) == {"waiting": 15}
    assert minutes([change(-1, UsageTrack.ADMIN, Admin.RETIRED)]) == {}


def test_a_period_that_has_not_begun_has_no_time() -> None:
    assert minutes(period=Period(begin=at(60), end=at(0))) == {}


TRACKS: dict[UsageTrack, list[str | None]] = {
    UsageTrack.PRESENCE: [*Presence],
    UsageTrack.HEALTH: [*Health],
    UsageTrack.ADMIN: [*Admin],
    UsageTrack.HOST: [*HostState],
    UsageTrack.RESERVATION: ["reserved", None],
}
MINUTES = st.floats(-90, 150)
CHANGES = st.sampled_from([*TRACKS]).flatmap(
    lambda track: st.builds(change, MINUTES, st.just(track), st.sampled_from(TRACKS[track]))
)
#: Also in orders that a clock that was set back would write.
ATTEMPTS = st.builds(
    attempt,
    MINUTES,
    unfit=st.none() | MINUTES,
    measuring=st.none() | MINUTES,
    finished=st.none() | MINUTES,
    kind=st.sampled_from(JobKind),
    state=st.sampled_from(AttemptState),
    code=st.none() | st.just(JOB_DEFERRED),
)
ACTIONS = st.builds(lambda first, second: Period(begin=at(first), end=at(second)), MINUTES, MINUTES)


@given(
    changes=st.lists(CHANGES, max_size=30),
    attempts=st.lists(ATTEMPTS, max_size=20),
    actions=st.lists(ACTIONS, max_size=10),
)
def test_the_states_of_any_history_add_up_to_the_time_not_retired(
    changes: list[UsageChange], attempts: list[AttemptTimes], actions: list[Period]
) -> None:
    history = [*changes, *attempt_changes(attempts), *action_changes(actions)]
    spent = usage(HOUR, history)
    whole = HOUR.end - HOUR.begin
    assert all(time >= timedelta(0) for time in spent.values())
    assert sum(spent.values(), timedelta(0)) <= whole
    never_retired = [each for each in history if each.value != Admin.RETIRED]
    assert sum(usage(HOUR, never_retired).values(), timedelta(0)) == whole
    shares = percentages(spent)
    assert round(sum(shares.values()), 6) == (100 if any(spent.values()) else 0)


@given(st.dictionaries(st.sampled_from(UsageState), st.timedeltas(timedelta(0), timedelta(days=7))))
def test_rounded_shares_add_up_and_none_is_off_by_a_tenth(spent: dict[UsageState, timedelta]) -> None:
    shares, whole = percentages(spent), sum(spent.values(), timedelta(0))
    if not whole:
        assert not any(shares.values())
        return
    assert round(sum(shares.values()), 6) == 100
    assert all(abs(shares[state] - 100 * (time / whole)) < 0.1001 for state, time in spent.items())


def test_a_week_begins_on_monday_in_utc() -> None:
    week = week_named("2026-W47")
    assert (week.begin, week.end - week.begin) == (MONDAY, timedelta(days=7))
    assert week_of(MONDAY) == week_of(week.end - timedelta(microseconds=1)) == week
    assert week_before(week_named("2027-W01")).name == "2026-W53"


@pytest.mark.parametrize(
    "name", ["2026-47", "W47", "2026-W54", "2026-W00", "0000-W01", "9999-W53", "²026-W47", ""]
)
def test_what_is_no_week_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        week_named(name)
    assert "2026-W47" in refused.value.hint
