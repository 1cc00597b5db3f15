"""Group commit: one transaction for many requests to one service, so they pay for lock and commit once.

The first request begins a transaction; requests that arrive before it has the database's lock join it, later
ones wait for the next. A single request never waits for others, and the more arrive, the more share a
transaction.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sqlalchemy.engine import Connection

from farm.core.errors import FarmBusy, FarmError
from farm.database.engine import Database

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")

#: The most requests of one transaction: while it runs, nothing else is written.
MAX_BATCH_ENTRIES = 40
#: The most bytes of one transaction; a larger request runs alone.
MAX_BATCH_BYTES = 4 * 1024 * 1024
#: The most bytes of pending requests in memory; a rejected caller retries.
MAX_PENDING_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _PendingWrite(Generic[RequestT, ResultT]):
    request: RequestT
    size_bytes: int
    result: Future[ResultT] = field(default_factory=Future)


class GroupCommit(Generic[RequestT, ResultT]):
    """A queue of requests that a service handles in order, as many in a transaction as are pending.

    A result is returned after its commit. If a transaction of several requests fails, each is retried alone,
    so that one bad request fails no other. Pending requests have a limit: a request beyond it is rejected,
    unless it is the only one.
    """

    def __init__(
        self,
        database: Database,
        service: Callable[[Connection, Sequence[RequestT]], Sequence[ResultT | FarmError]],
        *,
        size_bytes: Callable[[RequestT], int],
        max_pending_bytes: int = MAX_PENDING_BYTES,
    ) -> None:
        """Create an empty queue.

        Args:
            database: runs the transactions.
            service: returns for each request its result, or the error to raise for its caller.
            size_bytes: returns the size of a request; fewer large ones share a transaction.
            max_pending_bytes: the limit of all pending requests.
        """
        self._database = database
        self._service = service
        self._size_bytes = size_bytes
        self._max_pending_bytes = max_pending_bytes
        self._waiting: deque[_PendingWrite[RequestT, ResultT]] = deque()
        #: The size of all pending requests, running ones included.
        self._pending_bytes = 0
        self._is_under_way = False
        self._lock = threading.Lock()

    async def ask(self, requests: Sequence[RequestT]) -> list[ResultT | BaseException]:
        """Return the result or the error of each request; cancelling the caller cancels no request."""
        writes: list[_PendingWrite[RequestT, ResultT]] = [
            _PendingWrite(request=request, size_bytes=self._size_bytes(request)) for request in requests
        ]
        for write in writes:
            # From here on it cannot be cancelled.
            write.result.set_running_or_notify_cancel()
        with self._lock:
            rejected = [write for write in writes if not self._enqueue(write)]
            begins = bool(self._waiting) and not self._is_under_way
            self._is_under_way |= begins
        for write in rejected:
            write.result.set_exception(_queue_is_full())
        if begins:
            self._begin()
        return await asyncio.gather(
            *(asyncio.wrap_future(write.result) for write in writes), return_exceptions=True
        )

    def check_space(self) -> None:
        """Raise early for a caller whose request would be rejected now.

        Raises:
            FarmBusy: no request would be accepted.
        """
        if self._pending_bytes >= self._max_pending_bytes:
            raise _queue_is_full()

    def _enqueue(self, write: _PendingWrite[RequestT, ResultT]) -> bool:
        """Enqueue a request and return True, unless the queue is full."""
        if self._pending_bytes and self._pending_bytes + write.size_bytes > self._max_pending_bytes:
            return False
        self._pending_bytes += write.size_bytes
        self._waiting.append(write)

        def finished(_: Future[ResultT]) -> None:
            with self._lock:
                self._pending_bytes -= write.size_bytes

        write.result.add_done_callback(finished)
        return True

    def _begin(self) -> None:
        batch: list[_PendingWrite[RequestT, ResultT]] = []

        def serve(connection: Connection) -> Sequence[ResultT | FarmError]:
            if not batch:
                # Only once the lock is held; a retry handles the same batch.
                batch.extend(self._take_batch())
            return self._service(connection, [write.request for write in batch])

        self._submit(serve, lambda done: self._finish(batch, done))

    def _take_batch(self) -> list[_PendingWrite[RequestT, ResultT]]:
        with self._lock:
            batch = [self._waiting.popleft()]
            free_bytes = MAX_BATCH_BYTES - batch[0].size_bytes
            while (
                self._waiting and len(batch) < MAX_BATCH_ENTRIES and self._waiting[0].size_bytes <= free_bytes
            ):
                batch.append(self._waiting.popleft())
                free_bytes -= batch[-1].size_bytes
            return batch

    def _finish(
        self, batch: Sequence[_PendingWrite[RequestT, ResultT]], done: "Future[Sequence[ResultT | FarmError]]"
    ) -> None:
        error = done.exception()
        # Without the lock no batch was taken, and another attempt would not get it sooner.
        writes = batch or self._take_all_pending()
        with self._lock:
            self._is_under_way = has_more = bool(self._waiting)
        if has_more:
            self._begin()
        if error is None:
            for write, result in zip(writes, done.result(), strict=True):
                _resolve(write, result)
        elif len(batch) > 1:
            for write in batch:
                self._run_alone(write)
        else:
            for write in writes:
                write.result.set_exception(error)

    def _take_all_pending(self) -> list[_PendingWrite[RequestT, ResultT]]:
        with self._lock:
            writes = list(self._waiting)
            self._waiting.clear()
            return writes

    def _run_alone(self, write: _PendingWrite[RequestT, ResultT]) -> None:
        def finish(done: "Future[Sequence[ResultT | FarmError]]") -> None:
            error = done.exception()
            _resolve(write, done.result()[0]) if error is None else write.result.set_exception(error)

        self._submit(lambda connection: self._service(connection, [write.request]), finish)

    def _submit(
        self,
        serve: Callable[[Connection], Sequence[ResultT | FarmError]],
        finish: Callable[["Future[Sequence[ResultT | FarmError]]"], None],
    ) -> None:
        try:
            done = self._database.submit_change(serve)
        except RuntimeError as error:
            # The database is closed: the farm is stopping.
            done = Future()
            done.set_exception(error)
        done.add_done_callback(finish)


def _queue_is_full() -> FarmBusy:
    return FarmBusy("the farm's queue of pending writes is full", hint="send it again in a moment")


def _resolve(write: _PendingWrite[RequestT, ResultT], result: ResultT | FarmError) -> None:
    if isinstance(result, FarmError):
        write.result.set_exception(result)
    else:
        write.result.set_result(result)
