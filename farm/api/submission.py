"""Submissions: prepared in a transaction that reads, stored in a short one that writes."""

from collections.abc import Callable
from typing import Any

from farm.api.context import Context
from farm.core.base.idempotency_key import IdempotencyKey
from farm.core.base.ids import MatrixId
from farm.core.errors import FarmBusy
from farm.services.matrices.submit import PreparedMatrix, queue_prepared

#: What the farm has may change between the two, which is rare.
_TRIES = 10


async def submit(
    farm: Context,
    prepare: Callable[..., PreparedMatrix],
    *asked: Any,
    rerun_of: MatrixId | None = None,
    request: IdempotencyKey | None,
    actor: str,
    **how: Any,
) -> MatrixId:
    """Store a matrix that `prepare` makes of what is asked, over what the farm has at that moment.

    Raises:
        FarmBusy: what the farm has changed each time meanwhile.
    """
    now = farm.clock.now()
    for _ in range(_TRIES):
        ready = await farm.database.read_async(prepare, *asked, **how)
        matrix_id = await farm.database.change_async(
            queue_prepared, ready, rerun_of=rerun_of, request=request, now=now, actor=actor
        )
        if matrix_id is not None:
            farm.to_expand.set()
            return matrix_id
    raise FarmBusy("what the farm has changes all the time", hint="submit the matrix again")
