"""What was submitted before under the same key: a submission whose answer was lost is not done again."""

from sqlalchemy.engine import Connection

from farm.core.base.idempotency_key import IdempotencyKey
from farm.core.base.ids import MatrixId
from farm.core.errors import IdempotencyKeyReused
from farm.store.matrices import matrices


def find_submitted_matrix(
    connection: Connection, request: IdempotencyKey | None, *, actor: str
) -> MatrixId | None:
    """The matrix that somebody submitted by the same request; None when this one is the first, or has no key.

    Raises:
        IdempotencyKeyReused: they submitted something else under this key.
    """
    before = None if request is None else matrices.find_submission(connection, request.key, actor)
    if request is None or before is None:
        return None
    if before.digest != request.digest:
        raise IdempotencyKeyReused(
            f"matrix {before.matrix_id} was submitted under this key, by another request"
        )
    return before.matrix_id
