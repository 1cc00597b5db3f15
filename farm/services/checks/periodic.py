"""Has good phones checked now and then: what slowly goes wrong is to be found before it is in the numbers."""

from datetime import datetime, timedelta
from itertools import takewhile

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.checks.check_schedule import CheckRules
from farm.core.checks.reference_run import ReferenceVerdict
from farm.database.notifications import notify_hosts
from farm.store.checks import reference_runs
from farm.store.checks.schedule import DueCheck, checks_due, devices_with_unfit_runs
from farm.store.jobs import jobs

#: How many checks one round queues: each takes seconds of a phone.
_MAX_CHECKS = 50
#: A phone that was not fit to be judged is tried again, so often, before its daily check.
UNFIT_RETRY_AFTER = timedelta(minutes=30)
UNFIT_MAX_RETRIES = 3


def queue_due_checks(connection: Connection, rules: CheckRules, *, now: datetime) -> None:
    """Queue the checks of good phones that are due. Each is ahead of what its phone has to do, and alone."""
    for due in checks_due(
        connection, checked_before=now - rules.every, after_jobs=rules.after_jobs, limit=_MAX_CHECKS
    ):
        jobs.add_check(connection, due.device_id, now=now, cause=_cause(due, rules, now))
        notify_hosts(connection, [due.host_id])
    for device_id, host_id in devices_with_unfit_runs(connection, checked_before=now - UNFIT_RETRY_AFTER):
        if _unfit_in_a_row(connection, device_id) <= UNFIT_MAX_RETRIES:
            cause = "it was not fit to be judged by its golden run"
            jobs.add_check(connection, device_id, now=now, cause=cause)
            notify_hosts(connection, [host_id])


def _cause(due: DueCheck, rules: CheckRules, now: datetime) -> str:
    if due.claims >= rules.after_jobs:
        return f"it had {due.claims} jobs since its last one"
    hours = (now - due.checked_at).total_seconds() / 3600
    return f"its last one was {hours:.0f} h ago"


def _unfit_in_a_row(connection: Connection, device_id: DeviceId) -> int:
    newest = reference_runs.own_runs(connection, device_id, limit=UNFIT_MAX_RETRIES + 1)
    return len(list(takewhile(lambda run: run.verdict is ReferenceVerdict.UNFIT, newest)))
