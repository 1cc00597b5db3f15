"""Queue periodic checks of good phones: slow degradation is to be found before it is in the numbers."""

from datetime import datetime, timedelta
from itertools import takewhile

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.checks.check_schedule import CheckRules
from farm.core.checks.reference_run import ReferenceVerdict
from farm.database.notifications import notify_hosts
from farm.database.transaction import Tx
from farm.store.checks import reference_runs
from farm.store.checks.schedule import DueCheck, checks_due, devices_with_unfit_runs
from farm.store.jobs import jobs

#: The number of checks that one round queues: each takes seconds of a phone.
_MAX_CHECKS = 50
#: A phone that was not fit to be judged is tried again, so often, before its daily check.
UNFIT_RETRY_AFTER = timedelta(minutes=30)
UNFIT_MAX_RETRIES = 3


def queue_due_checks(tx: Tx, rules: CheckRules) -> None:
    """Queue the checks of good phones that are due. Each is ahead of what its phone has to do, and alone."""
    for due in checks_due(
        tx.connection, checked_before=tx.now - rules.every, after_jobs=rules.after_jobs, limit=_MAX_CHECKS
    ):
        jobs.add_check(tx.by("farm"), due.device_id, cause=_cause(due, rules, tx.now))
        notify_hosts(tx.connection, [due.host_id])
    for device_id, host_id in devices_with_unfit_runs(
        tx.connection, checked_before=tx.now - UNFIT_RETRY_AFTER
    ):
        if _unfit_in_a_row(tx.connection, device_id) <= UNFIT_MAX_RETRIES:
            cause = "it was not fit to be assessed by its reference run"
            jobs.add_check(tx.by("farm"), device_id, cause=cause)
            notify_hosts(tx.connection, [host_id])


def _cause(due: DueCheck, rules: CheckRules, now: datetime) -> str:
    if due.claims >= rules.after_jobs:
        return f"it had {due.claims} jobs since its last one"
    hours = (now - due.checked_at).total_seconds() / 3600
    return f"its last one was {hours:.0f} h ago"


def _unfit_in_a_row(connection: Connection, device_id: DeviceId) -> int:
    newest = reference_runs.own_runs(connection, device_id, limit=UNFIT_MAX_RETRIES + 1)
    return len(list(takewhile(lambda run: run.verdict is ReferenceVerdict.UNFIT, newest)))
