"""What was submitted before under the same key: a submission whose answer was lost is not done again."""

from sqlalchemy.engine import Connection

from farm.core.base.idempotency_key import RequestKey
from farm.core.base.ids import MatrixId
from farm.core.errors import RequestReused
from farm.store.matrices import matrices


def find_answered(connection: Connection, request: RequestKey | None, *, actor: str) -> MatrixId | None:
    """The matrix that somebody submitted by the same request; None when this one is the first, or has no key.

    Raises:
        RequestReused: they submitted something else under this key.
    """
    before = None if request is None else matrices.find_submission(connection, request.key, actor)
    if request is None or before is None:
        return None
    if before.digest != request.digest:
        raise RequestReused(f"matrix {before.matrix_id} was submitted under this key, by another request")
    return before.matrix_id
