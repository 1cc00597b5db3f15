"""Usage of devices: for what the time of a week went, computed from what changed in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import HostState
from farm.core.errors import InvalidInput
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.job import JobKind
from farm.core.jobs.retry import JOB_DEFERRED, LONGEST_PAUSE


class UsageState(StrEnum):
    """What a device is doing at a moment; docs/operator.md defines each of them for users."""

    #: Its program runs, or the evidence of the run is being collected and settled.
    MEASURING = "measuring"
    #: It has a job, and files are pushed and controls set; no gate is closed.
    PREPARING = "preparing"
    #: It has a job and is not fit for it, or a job is deferred because it was not.
    COOLING = "cooling"
    #: A check with its reference run, a device action, or waiting for a check.
    CHECKING = "checking"
    #: It is free: no job for it, or its next job waits for something that devices share.
    WAITING = "waiting"
    #: It cannot be used: not online, reserved, cordoned, not admitted, bad, or its host is drained.
    AWAY = "away"


class UsageTrack(StrEnum):
    """The independent facts of which the state is made."""

    PRESENCE = "presence"
    HEALTH = "health"
    ADMIN = "admin"
    HOST = "host"
    RESERVATION = "reservation"
    #: The usage that the current attempt stands for.
    ATTEMPT = "attempt"
    ACTIONS = "actions"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChange:
    """A fact of a device from a moment on, as the text of its enum; None is its resting value."""

    at: datetime
    track: UsageTrack
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTimes:
    """The moments of an attempt; a later attempt on its device ends it in any case."""

    kind: JobKind
    state: AttemptState
    code: str | None
    claimed_at: datetime
    #: When its agent first reported a closed gate.
    unfit_at: datetime | None
    #: When its agent reported that the program runs.
    measuring_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A span of time, without its end."""

    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Week(Period):
    """An ISO week, Monday to Sunday, in UTC."""

    name: str


#: The facts of a device that no event changed yet.
INITIAL_VALUES: Mapping[UsageTrack, str | None] = {
    UsageTrack.PRESENCE: Presence.ABSENT,
    UsageTrack.HEALTH: Health.UNKNOWN,
    UsageTrack.ADMIN: Admin.PENDING,
    UsageTrack.HOST: HostState.ACTIVE,
    UsageTrack.RESERVATION: None,
    UsageTrack.ATTEMPT: None,
    UsageTrack.ACTIONS: None,
}


def week_of(at: datetime) -> Week:
    """Return the week of a moment."""
    year, number, _ = at.astimezone(UTC).isocalendar()
    return _week(year, number)


def week_named(name: str) -> Week:
    """Return the week of a name like `2026-W47`.

    Raises:
        InvalidInput: there is no such week.
    """
    year, separator, number = name.partition("-W")
    # The first and the last year have weeks that reach beyond what a date can be.
    is_name = separator and len(year) == 4 and len(number) == 2 and (year + number).isdecimal()
    if is_name and year.isascii() and number.isascii() and "0001" < year < "9999":
        try:
            return _week(int(year), int(number))
        except ValueError:
            pass
    raise InvalidInput(f"{name!r} is not a week", hint="write an ISO week, like 2026-W47")


def week_before(week: Week) -> Week:
    """Return the previous week."""
    return week_of(week.begin - timedelta(days=1))


def _week(year: int, number: int) -> Week:
    monday = datetime.combine(date.fromisocalendar(year, number, 1), datetime.min.time(), UTC)
    return Week(begin=monday, end=monday + timedelta(days=7), name=f"{year:04}-W{number:02}")


def usage(period: Period, changes: Iterable[UsageChange]) -> dict[UsageState, timedelta]:
    """Return the time of each state; together they are the period, without the time of a retired device.

    Changes before the period give the values at its beginning; those of one moment apply in their order.
    """
    values = dict(INITIAL_VALUES)
    spent = dict.fromkeys(UsageState, timedelta(0))
    at = min(period.begin, period.end)
    for change in sorted(changes, key=lambda change: change.at):
        until = min(max(change.at, at), period.end)
        state = _state(values)
        if state is not None:
            spent[state] += until - at
        at, values[change.track] = until, change.value
    state = _state(values)
    if state is not None and at < period.end:
        spent[state] += period.end - at
    return spent


def _state(values: Mapping[UsageTrack, str | None]) -> UsageState | None:
    """Return the state of a device; None if it is retired. The first rule that applies decides."""
    attempt = values[UsageTrack.ATTEMPT]
    if values[UsageTrack.ADMIN] == Admin.RETIRED and attempt is None:
        return None
    if values[UsageTrack.PRESENCE] != Presence.ONLINE:
        return UsageState.AWAY
    # A run in progress ends before a reservation or an operator's decision takes effect.
    if attempt is not None:
        return UsageState(attempt)
    if (
        values[UsageTrack.ADMIN] != Admin.ACTIVE
        or values[UsageTrack.HOST] != HostState.ACTIVE
        or values[UsageTrack.RESERVATION] is not None
        or values[UsageTrack.HEALTH] == Health.BAD
    ):
        return UsageState.AWAY
    if values[UsageTrack.ACTIONS] is not None or values[UsageTrack.HEALTH] != Health.GOOD:
        return UsageState.CHECKING
    return UsageState.WAITING


def attempt_changes(attempts: Sequence[AttemptTimes]) -> Iterator[UsageChange]:
    """Yield what the attempts of a device change, from its first claim on."""
    ordered = sorted(attempts, key=lambda attempt: attempt.claimed_at)
    for attempt, following in pairwise([*ordered, None]):
        assert attempt is not None
        limit = None if following is None else following.claimed_at
        for at, state in _phases(attempt):
            if limit is None or at < limit:
                yield UsageChange(at=at, track=UsageTrack.ATTEMPT, value=state)


def _phases(attempt: AttemptTimes) -> Iterator[tuple[datetime, UsageState | None]]:
    claimed_at, finished_at = attempt.claimed_at, attempt.finished_at
    if attempt.kind is JobKind.CHECK:
        yield claimed_at, UsageState.CHECKING
    elif attempt.state is AttemptState.FINISHED and attempt.measuring_at is None:
        # The farm was down when the program started: only the report told it of the run.
        yield claimed_at, UsageState.MEASURING
    else:
        yield claimed_at, UsageState.PREPARING
        if attempt.unfit_at is not None:
            yield attempt.unfit_at, UsageState.COOLING
        if attempt.measuring_at is not None:
            yield attempt.measuring_at, UsageState.MEASURING
    if finished_at is None:
        return
    paused_until = claimed_at + LONGEST_PAUSE
    if attempt.code == JOB_DEFERRED and finished_at < paused_until:
        yield finished_at, UsageState.COOLING
        yield paused_until, None
    else:
        yield finished_at, None


def action_changes(actions: Iterable[Period]) -> Iterator[UsageChange]:
    """Yield when a device had at least one open device action."""
    open_until: datetime | None = None
    for action in sorted(actions, key=lambda action: action.begin):
        if open_until is None or action.begin > open_until:
            if open_until is not None:
                yield UsageChange(at=open_until, track=UsageTrack.ACTIONS, value=None)
            yield UsageChange(at=action.begin, track=UsageTrack.ACTIONS, value="open")
            open_until = action.end
        open_until = max(open_until, action.end)
    if open_until is not None:
        yield UsageChange(at=open_until, track=UsageTrack.ACTIONS, value=None)


def percentages(spent: Mapping[UsageState, timedelta]) -> dict[UsageState, float]:
    """Return the share of each state in per cent with one decimal; their sum is 100, or 0 without any time.

    Rounded by largest remainders, so that a row adds up.
    """
    whole = sum(spent.values(), timedelta(0))
    if not whole:
        return dict.fromkeys(spent, 0.0)
    parts = {state: divmod(duration * 1000, whole) for state, duration in spent.items()}
    missing = 1000 - sum(tenths for tenths, _ in parts.values())
    rounded_up = sorted(parts, key=lambda state: parts[state][1], reverse=True)[:missing]
    return {state: (tenths + (state in rounded_up)) / 10 for state, (tenths, _) in parts.items()}
