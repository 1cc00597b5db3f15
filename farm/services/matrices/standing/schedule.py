"""Schedules of standing matrices: five fields of cron, in UTC."""

import re
from datetime import UTC, datetime, timedelta

from apscheduler.triggers.cron import CronTrigger

from farm.core.base.spec_errors import SpecProblem, matrix_invalid

#: The fields of cron in their order, with their values.
_FIELDS = (
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day", "1 to 31"),
    ("month", "1 to 12"),
    ("weekday", "`mon` to `sun`"),
)
_EXAMPLE = '`schedule: "0 2 * * *"` is every night at two, UTC'


def check_schedule(schedule: str, *, now: datetime) -> datetime:
    """Return the first time of a schedule after now.

    Raises:
        MatrixInvalid: it is none, or has no time to come.
    """
    fields = schedule.split()
    if len(fields) != 5:
        names = ", ".join(name for name, _ in _FIELDS)
        raise _invalid(f"five fields are needed, not {len(fields)}: {names}", _EXAMPLE)
    if re.search(r"(?<![/\d])\d", fields[4]):
        # 1 is Monday for cron, and Tuesday for the library.
        raise _invalid("weekdays are named", "`mon` to `sun`, such as `mon-fri`")
    try:
        next_at = next_time(schedule, after=now)
    except ValueError as error:
        wrong = (
            f"`{field}` is no {name} of cron, which is {bounds}"
            for number, (field, (name, bounds)) in enumerate(zip(fields, _FIELDS, strict=True))
            if not _is_valid(number, field)
        )
        raise _invalid(next(wrong, f"`{schedule}` is no schedule of cron"), _EXAMPLE) from error
    if next_at is None:
        raise _invalid("there is no such time", _EXAMPLE)
    return next_at


def next_time(schedule: str, *, after: datetime) -> datetime | None:
    """Return the first time of a schedule later than another; None if there is none to come."""
    trigger = CronTrigger.from_crontab(schedule, timezone=UTC)
    next_at: datetime | None = trigger.get_next_fire_time(None, after + timedelta(seconds=1))
    return next_at


def _is_valid(number: int, field: str) -> bool:
    fields = ["*"] * 5
    fields[number] = field
    try:
        CronTrigger.from_crontab(" ".join(fields), timezone=UTC)
    except ValueError:
        return False
    return True


def _invalid(message: str, hint: str) -> Exception:
    return matrix_invalid([SpecProblem(path=("schedule",), message=message, hint=hint)])
