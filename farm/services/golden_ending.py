"""How a check ends that all of a phone passed but its golden run."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.device import Health
from farm.core.errors import Blame
from farm.core.evidence import Evidence
from farm.core.golden import check_code
from farm.core.measurement import Outcome
from farm.services.ending import Ending
from farm.services.golden import keep_golden_run, standing_of_check
from farm.store.attempts import Attempt


def by_golden_run(
    connection: Connection, attempt: Attempt, evidence: Evidence, *, now: datetime
) -> Ending | None:
    """Keep what a check took; the ending of one that is not passed by that. None: it is passed."""
    keep_golden_run(connection, attempt, evidence, now=now)
    standing = standing_of_check(connection, attempt.job_id)
    if standing is None or standing.health is Health.GOOD:
        return None
    return Ending(
        outcome=Outcome.FAILED,
        blame=Blame.DEVICE,
        code=check_code(standing.verdict),
        message=standing.words,
    )
