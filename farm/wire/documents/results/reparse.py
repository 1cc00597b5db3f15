"""Documents about parsing stored evidence again."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from farm.core.base.ids import AttemptId, JobId, MatrixId
from farm.core.results.reparse import ReparseKind
from farm.wire.base import Count, Wire
from farm.wire.documents.files.programs import Text

#: So that a piece is done within seconds, whatever was printed.
MAX_PER_PAGE = 200


class ReparseRequest(Wire):
    """POST /api/v1/reparse: the next piece of the evidence to be read again."""

    matrix_id: MatrixId | None = None
    harness: Text | None = None
    #: Only what ended then or later.
    since: datetime | None = None
    #: Attempts after this one.
    after: Count = 0
    limit: Annotated[int, Field(ge=1, le=MAX_PER_PAGE)] = 50
    #: Say what would change, and change nothing.
    dry_run: bool = True


class ReparseChangeView(Wire):
    """One attempt whose evidence is read otherwise."""

    kind: ReparseKind
    attempt_id: AttemptId
    job_id: JobId
    matrix_id: MatrixId
    harness: str
    from_version: int | None
    to_version: int
    what: str


class ReparsePage(Wire):
    """The result of one page."""

    changes: tuple[ReparseChangeView, ...]
    #: Attempts with evidence that an older version read, or nobody could.
    examined: int
    up_to_date: int
    #: They have lost their evidence by the rules of retention, and stay as they were read.
    expired: int
    #: To be asked for next; None at the end.
    next_after: int | None
