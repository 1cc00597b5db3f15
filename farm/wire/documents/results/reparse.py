"""What the API is asked, and says, of reading evidence again."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from farm.core.base.ids import AttemptId, JobId, MatrixId
from farm.core.results.reparse import RereadKind
from farm.wire.base import Count, Wire
from farm.wire.documents.files.programs import Text

#: So that a piece is done within seconds, whatever was printed.
MOST_AT_ONCE = 200


class RereadRequest(Wire):
    """POST /api/v1/reparse: the next piece of the evidence to be read again."""

    matrix_id: MatrixId | None = None
    harness: Text | None = None
    #: Only what ended then or later.
    since: datetime | None = None
    #: Attempts after this one.
    after: Count = 0
    limit: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 50
    #: Say what would change, and change nothing.
    dry_run: bool = True


class RereadView(Wire):
    """One attempt whose evidence is read otherwise."""

    kind: RereadKind
    attempt_id: AttemptId
    job_id: JobId
    matrix_id: MatrixId
    harness: str
    from_version: int | None
    to_version: int
    what: str


class RereadPage(Wire):
    """What came of a piece."""

    changes: tuple[RereadView, ...]
    #: Attempts with evidence that an older version read, or nobody could.
    looked_at: int
    up_to_date: int
    #: They have lost their evidence by the rules of retention, and stay as they were read.
    expired: int
    #: To be asked for next; None at the end.
    next_after: int | None
