"""One transaction for all that waits to be written in the same way: it pays for the lock and the commit once.

The first question begins a transaction; what is asked until that one has the database's lock comes along, and
what is asked later waits for the next. So a question that comes alone waits for nobody, and the more come the
more of them share.
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

Q = TypeVar("Q")
A = TypeVar("A")

#: While they are settled nobody else writes.
MAX_BATCH_ENTRIES = 40
#: Likewise; one that is larger goes alone.
MAX_BATCH_BYTES = 4 * 1024 * 1024
#: What waits is in memory, and there may be many askers; whoever is turned away comes again.
MAX_PENDING_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _PendingWrite(Generic[Q, A]):
    question: Q
    size_bytes: int
    answer: Future[A] = field(default_factory=Future)


class GroupCommit(Generic[Q, A]):
    """Has a service answer questions in the order they came, as many in a transaction as have come by then.

    An answer is given after the commit that holds it. Whatever undoes a transaction of several has each of
    them tried alone, so that one that cannot be answered harms no other. What is not answered yet has a
    bound: a question beyond it is turned away untouched, unless it is the only one.
    """

    def __init__(
        self,
        database: Database,
        service: Callable[[Connection, Sequence[Q]], Sequence[A | FarmError]],
        *,
        size_bytes: Callable[[Q], int],
        max_pending_bytes: int = MAX_PENDING_BYTES,
    ) -> None:
        """Nothing is asked yet.

        Args:
            database: where.
            service: gives for each question its answer, or the error that its asker is to get.
            size_bytes: of a question; of large ones, fewer come together.
            max_pending_bytes: of all questions that are not answered yet.
        """
        self._database = database
        self._service = service
        self._size_bytes = size_bytes
        self._max_pending_bytes = max_pending_bytes
        self._waiting: deque[_PendingWrite[Q, A]] = deque()
        #: Of all that are not answered yet, those under way among them.
        self._held_bytes = 0
        self._is_under_way = False
        self._turn = threading.Lock()

    async def ask(self, questions: Sequence[Q]) -> list[A | BaseException]:
        """The answers, or what kept each from being answered; an asker who goes away takes nothing back."""
        asked: list[_PendingWrite[Q, A]] = [
            _PendingWrite(question=each, size_bytes=self._size_bytes(each)) for each in questions
        ]
        for each in asked:
            # From here on nobody can cancel it.
            each.answer.set_running_or_notify_cancel()
        with self._turn:
            turned_away = [each for each in asked if not self._take(each)]
            begins = bool(self._waiting) and not self._is_under_way
            self._is_under_way |= begins
        for each in turned_away:
            each.answer.set_exception(_queue_is_full())
        if begins:
            self._begin()
        return await asyncio.gather(
            *(asyncio.wrap_future(each.answer) for each in asked), return_exceptions=True
        )

    def check_space(self) -> None:
        """Spare an asker the way who would be turned away now.

        Raises:
            FarmBusy: no question would be taken.
        """
        if self._held_bytes >= self._max_pending_bytes:
            raise _queue_is_full()

    def _take(self, asked: _PendingWrite[Q, A]) -> bool:
        """Have a question wait, unless there is no room for it."""
        if self._held_bytes and self._held_bytes + asked.size_bytes > self._max_pending_bytes:
            return False
        self._held_bytes += asked.size_bytes
        self._waiting.append(asked)

        def answered(_: Future[A]) -> None:
            with self._turn:
                self._held_bytes -= asked.size_bytes

        asked.answer.add_done_callback(answered)
        return True

    def _begin(self) -> None:
        together: list[_PendingWrite[Q, A]] = []

        def serve(connection: Connection) -> Sequence[A | FarmError]:
            if not together:
                # Not before the lock is there. Run again, it is about the same ones.
                together.extend(self._taken())
            return self._service(connection, [each.question for each in together])

        self._submit(serve, lambda done: self._ended(together, done))

    def _taken(self) -> list[_PendingWrite[Q, A]]:
        with self._turn:
            taken = [self._waiting.popleft()]
            left_bytes = MAX_BATCH_BYTES - taken[0].size_bytes
            while (
                self._waiting and len(taken) < MAX_BATCH_ENTRIES and self._waiting[0].size_bytes <= left_bytes
            ):
                taken.append(self._waiting.popleft())
                left_bytes -= taken[-1].size_bytes
            return taken

    def _ended(
        self, together: Sequence[_PendingWrite[Q, A]], done: "Future[Sequence[A | FarmError]]"
    ) -> None:
        error = done.exception()
        # Without the lock nothing was taken, and no further try would get it sooner.
        concerned = together or self._take_all_pending()
        with self._turn:
            self._is_under_way = goes_on = bool(self._waiting)
        if goes_on:
            self._begin()
        if error is None:
            for asked, answer in zip(concerned, done.result(), strict=True):
                _resolve(asked, answer)
        elif len(together) > 1:
            for each in together:
                self._run_alone(each)
        else:
            for each in concerned:
                each.answer.set_exception(error)

    def _take_all_pending(self) -> list[_PendingWrite[Q, A]]:
        with self._turn:
            taken = list(self._waiting)
            self._waiting.clear()
            return taken

    def _run_alone(self, asked: _PendingWrite[Q, A]) -> None:
        def ended(done: "Future[Sequence[A | FarmError]]") -> None:
            error = done.exception()
            _resolve(asked, done.result()[0]) if error is None else asked.answer.set_exception(error)

        self._submit(lambda connection: self._service(connection, [asked.question]), ended)

    def _submit(
        self,
        serve: Callable[[Connection], Sequence[A | FarmError]],
        ended: Callable[["Future[Sequence[A | FarmError]]"], None],
    ) -> None:
        try:
            done = self._database.submit_change(serve)
        except RuntimeError as error:
            # The database was closed meanwhile: the farm stops.
            done = Future()
            done.set_exception(error)
        done.add_done_callback(ended)


def _queue_is_full() -> FarmBusy:
    return FarmBusy(
        "more waits to be written than the farm keeps in memory", hint="send it again in a moment"
    )


def _resolve(asked: _PendingWrite[Q, A], answer: A | FarmError) -> None:
    if isinstance(answer, FarmError):
        asked.answer.set_exception(answer)
    else:
        asked.answer.set_result(answer)
