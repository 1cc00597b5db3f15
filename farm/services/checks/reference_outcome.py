"""How a check ends that all of a phone passed but its golden run."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.checks.reference_run import GoldenVerdict, check_code
from farm.core.devices.device import Health
from farm.core.errors import Blame
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Outcome
from farm.services.checks.reference_runs import keep_golden_run, standing_of_check, was_out_before
from farm.services.jobs.termination import Ending
from farm.store.jobs.attempts import Attempt


def by_golden_run(
    connection: Connection, attempt: Attempt, evidence: Evidence, *, now: datetime
) -> Ending | None:
    """Keep what a check took; the ending of one that is not passed by that. None: it is passed."""
    keep_golden_run(connection, attempt, evidence, now=now)
    standing = standing_of_check(connection, attempt.job_id)
    if standing is None or standing.health is Health.GOOD:
        return None if standing else _untimed(connection, attempt)
    return _failed(standing.verdict, standing.words)


def _untimed(connection: Connection, attempt: Attempt) -> Ending | None:
    """A phone that was too slow is not good because its golden run does not come to an end any more."""
    last = was_out_before(connection, attempt.device_id)
    if last is None:
        return None
    words = f"its golden run did not come to an end that can be timed; the last one was {last.verdict}"
    return _failed(GoldenVerdict.UNFIT, words)


def _failed(verdict: GoldenVerdict, words: str) -> Ending:
    return Ending(outcome=Outcome.FAILED, blame=Blame.DEVICE, code=check_code(verdict), message=words)
