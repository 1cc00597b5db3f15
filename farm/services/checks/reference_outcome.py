"""How a check ends that all of a phone passed but its golden run."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.checks.reference_run import ReferenceVerdict, check_code
from farm.core.devices.device import Health
from farm.core.errors import Blame
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Outcome
from farm.services.checks.reference_runs import (
    find_run_out_of_range,
    record_reference_run,
    reference_state_of_check,
)
from farm.services.jobs.termination import AttemptOutcome
from farm.store.jobs.attempts import Attempt


def by_reference_run(
    connection: Connection, attempt: Attempt, evidence: Evidence, *, now: datetime
) -> AttemptOutcome | None:
    """Keep what a check took; the ending of one that is not passed by that. None: it is passed."""
    record_reference_run(connection, attempt, evidence, now=now)
    standing = reference_state_of_check(connection, attempt.job_id)
    if standing is None or standing.health is Health.GOOD:
        return None if standing else _timeout_outcome(connection, attempt)
    return _failed_outcome(standing.verdict, standing.words)


def _timeout_outcome(connection: Connection, attempt: Attempt) -> AttemptOutcome | None:
    """A phone that was too slow is not good because its golden run does not come to an end any more."""
    last = find_run_out_of_range(connection, attempt.device_id)
    if last is None:
        return None
    words = f"its golden run did not come to an end that can be timed; the last one was {last.verdict}"
    return _failed_outcome(ReferenceVerdict.UNFIT, words)


def _failed_outcome(verdict: ReferenceVerdict, words: str) -> AttemptOutcome:
    return AttemptOutcome(outcome=Outcome.FAILED, blame=Blame.DEVICE, code=check_code(verdict), message=words)
