"""What waits to be written alike shares a transaction, and each gets an answer of its own."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.errors import FarmBusy, FarmError, InvalidInput
from farm.database.engine import Database
from farm.database.group_commit import MAX_BATCH_BYTES, MAX_BATCH_ENTRIES, GroupCommit
from farm.database.tables import artifacts
from tests.support.database.sample_rows import NOW

pytestmark = pytest.mark.anyio


class Writing:
    """Writes numbers down; refuses some, and fails with others."""

    def __init__(self) -> None:
        #: The numbers of each transaction that was tried.
        self.tried: list[list[int]] = []
        self.refused: set[int] = set()
        self.poison: set[int] = set()
        self.error: Exception = ValueError("poison")
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.begun = threading.Event()

    def write(self, connection: Connection, numbers: Sequence[int]) -> list[str | FarmError]:
        self.tried.append(list(numbers))
        self.begun.set()
        self.may_go_on.wait(30)
        for number in numbers:
            row = {"digest": f"{number:064}", "size_bytes": number, "created_at": NOW, "used_at": NOW}
            if number not in self.refused:
                connection.execute(artifacts.insert().values(row))
        if self.poison & set(numbers):
            raise self.error
        return [InvalidInput("no") if number in self.refused else f"wrote {number}" for number in numbers]


def written(database: Database) -> list[int]:
    def query(connection: Connection) -> list[int]:
        return list(connection.execute(sa.select(artifacts.c.size_bytes).order_by("size_bytes")).scalars())

    return database.read(query)


async def all_at_once(
    database: Database, writing: Writing, numbers: Sequence[int], *, size_bytes: int = 1, **bounds: int
) -> list[str | BaseException]:
    """Ask for the first number; while that is written, for all others one by one."""
    together = GroupCommit(database, writing.write, size_bytes=lambda _: size_bytes, **bounds)
    writing.may_go_on.clear()
    asked = [asyncio.create_task(together.ask([numbers[0]]))]
    await asyncio.to_thread(writing.begun.wait, 30)
    asked += [asyncio.create_task(together.ask([number])) for number in numbers[1:]]
    await asyncio.sleep(0)
    writing.may_go_on.set()
    return [answer for task in asked for answer in await task]


async def test_what_comes_while_one_is_written_goes_in_the_next_transaction(database: Database) -> None:
    writing = Writing()
    answers = await all_at_once(database, writing, [1, 2, 3, 4])
    assert answers == [f"wrote {number}" for number in (1, 2, 3, 4)]
    assert writing.tried == [[1], [2, 3, 4]]
    assert written(database) == [1, 2, 3, 4]


async def test_no_more_go_together_than_others_may_wait_for(database: Database) -> None:
    writing, numbers = Writing(), list(range(1, MAX_BATCH_ENTRIES + 4))
    await all_at_once(database, writing, numbers)
    assert [len(tried) for tried in writing.tried] == [1, MAX_BATCH_ENTRIES, 2]
    assert written(database) == numbers


async def test_large_ones_go_alone(database: Database) -> None:
    writing = Writing()
    await all_at_once(database, writing, [1, 2, 3], size_bytes=MAX_BATCH_BYTES)
    assert writing.tried == [[1], [2], [3]]


@pytest.mark.invariant("I12")
async def test_what_is_too_much_to_wait_is_turned_away_unwritten(database: Database) -> None:
    writing = Writing()
    answers = await all_at_once(database, writing, [1, 2, 3, 4], size_bytes=10, max_pending_bytes=30)
    assert answers[:3] == ["wrote 1", "wrote 2", "wrote 3"]
    assert isinstance(answers[3], FarmBusy)
    assert answers[3].transient
    assert written(database) == [1, 2, 3]


async def test_of_questions_that_come_together_those_are_taken_that_there_is_room_for(
    database: Database,
) -> None:
    writing = Writing()
    together = GroupCommit(database, writing.write, size_bytes=lambda number: number, max_pending_bytes=10)
    answers = await together.ask([4, 7, 6])
    assert [type(answer) for answer in answers] == [str, FarmBusy, str]
    assert written(database) == [4, 6]


async def test_what_was_answered_makes_room_however_it_was_answered(database: Database) -> None:
    writing = Writing()
    writing.refused, writing.poison = {2}, {3}
    together = GroupCommit(database, writing.write, size_bytes=lambda _: 10, max_pending_bytes=10)
    for number in (1, 2, 3, 4):
        together.check_space()
        (answer,) = await together.ask([number])
        assert not isinstance(answer, FarmBusy)
    assert written(database) == [1, 4]


async def test_one_that_is_larger_than_all_that_may_wait_is_written_when_nothing_else_is(
    database: Database,
) -> None:
    together = GroupCommit(database, Writing().write, size_bytes=lambda _: 100, max_pending_bytes=10)
    assert await together.ask([1]) == ["wrote 1"]


async def test_while_there_is_no_room_no_one_need_send_anything(database: Database) -> None:
    writing = Writing()
    writing.may_go_on.clear()
    together = GroupCommit(database, writing.write, size_bytes=lambda _: 10, max_pending_bytes=10)
    asked = asyncio.create_task(together.ask([1]))
    await asyncio.to_thread(writing.begun.wait, 30)
    with pytest.raises(FarmBusy):
        together.check_space()
    writing.may_go_on.set()
    assert await asked == ["wrote 1"]


async def test_one_that_is_refused_is_told_so_and_the_others_are_written(database: Database) -> None:
    writing = Writing()
    writing.refused = {3}
    answers = await all_at_once(database, writing, [1, 2, 3, 4])
    assert isinstance(answers[2], InvalidInput)
    assert writing.tried == [[1], [2, 3, 4]]
    assert written(database) == [1, 2, 4]


@pytest.mark.invariant("I12", "I17")
@pytest.mark.parametrize("error", [ValueError("poison"), FarmBusy("no room for it")], ids=type)
async def test_one_that_undoes_the_transaction_harms_no_other(database: Database, error: Exception) -> None:
    writing = Writing()
    writing.poison, writing.error = {3}, error
    answers = await all_at_once(database, writing, [1, 2, 3, 4])
    assert answers[2] is error
    assert [answers[0], answers[1], answers[3]] == ["wrote 1", "wrote 2", "wrote 4"]
    first, together, *alone = writing.tried
    assert (first, together, sorted(alone)) == ([1], [2, 3, 4], [[2], [3], [4]])
    assert written(database) == [1, 2, 4]


async def test_who_goes_away_takes_nothing_back(database: Database) -> None:
    writing = Writing()
    together = GroupCommit(database, writing.write, size_bytes=lambda _: 1)
    writing.may_go_on.clear()
    leaving = asyncio.create_task(together.ask([1]))
    await asyncio.to_thread(writing.begun.wait, 30)
    staying = asyncio.create_task(together.ask([2]))
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    writing.may_go_on.set()
    assert await staying == ["wrote 2"]
    assert written(database) == [1, 2]


async def test_after_the_end_no_one_waits_for_ever(database: Database) -> None:
    together = GroupCommit(database, Writing().write, size_bytes=lambda _: 1)
    await asyncio.to_thread(database.close)
    for _ in range(2):
        (answer,) = await together.ask([1])
        assert isinstance(answer, RuntimeError)
