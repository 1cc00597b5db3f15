"""Background expansion of large matrices, by the process that took them or one that finds them unfinished."""

import asyncio

import structlog

from farm.clock import Clock
from farm.core.base.ids import MatrixId
from farm.core.errors import FarmError
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.services.matrices.lazy_expansion import CHUNK_JOBS, RowBuilder, open_row_builder, put_row_batch
from farm.store.matrices.lazy_expansion import next_batches, next_matrix

log = structlog.get_logger(__name__)


class ExpansionWorker:
    """Expands pending matrices whenever called; other writers have their turn between two chunks."""

    def __init__(self, database: Database, clock: Clock, *, chunk_jobs: int = CHUNK_JOBS) -> None:
        self._database = database
        self._clock = clock
        self._chunk_jobs = chunk_jobs

    async def __call__(self) -> None:
        """Expand until nothing is left, including what is submitted in the meantime.

        A matrix that fails to expand, through a defect of the farm, delays no other: it stays as it is.
        """
        builder: RowBuilder | None = None
        failed: set[MatrixId] = set()
        while (next_id := await self._database.read_async(next_matrix, excluded=failed)) is not None:
            try:
                if builder is None or builder.matrix_id != next_id:
                    builder = await self._database.read_async(open_row_builder, next_id)
                if builder is not None:
                    await self._put_chunk(builder)
            except FarmError:
                raise
            except Exception:
                log.exception("expansion_failed", matrix_id=next_id)
                failed.add(next_id)

    async def _put_chunk(self, builder: RowBuilder) -> None:
        """Queue the next jobs of a matrix."""
        pieces = await self._database.read_async(next_batches, builder.matrix_id, jobs=self._chunk_jobs)
        if not pieces:
            # Another process was quicker with the last of them, or it was cancelled.
            return
        # On a thread, and before the lock is taken: ordering a round takes a while.
        chunk = await asyncio.to_thread(builder.build, pieces)
        # A lost race is harmless: the next read starts where the other process stopped.
        if await self._database.write_async(bind_tx(put_row_batch, now=self._clock.now()), builder, chunk):
            log.debug("jobs_expanded", matrix_id=builder.matrix_id, jobs=len(chunk.jobs))
