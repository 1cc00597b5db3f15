"""Matrices are found by any part of their names, in pages, whether their names are indexed yet or not."""

import random

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.database import tables
from farm.database.engine import Database
from farm.database.transaction import Tx, bind_tx
from farm.store.matrices import search
from farm.store.matrices.search import (
    MatrixFilter,
    index_names,
    list_matrices,
    trigrams,
    with_few_matches,
)
from tests.support.database.sample_rows import NOW

MATRIX = {
    "harness": "h",
    "spec": {"name": "m", "harness": "h", "devices": [{}]},
    "rounds": 1,
    "seed": 1,
    "rejected_count": 0,
    "created_at": NOW,
}
#: Random, with parts in common.
_WORDS = (
    "nightly",
    "Nacht",
    "PR 1",
    "100 %",
    "ßtraße",
    "_",
    "ab",
    "語音語音",
    "MobileNet",
    "int8 vs. float32",
)


def add_matrices(connection: Connection, names: list[str]) -> None:
    connection.execute(tables.matrices.insert(), [{**MATRIX, "name": name} for name in names])


def numbers(connection: Connection, name: str, **options: object) -> list[MatrixId]:
    found = list_matrices(connection, which=MatrixFilter(name=name), **options)  # type: ignore[arg-type]
    return [matrix.matrix_id for matrix in found]


@pytest.mark.parametrize("indexed", [0, 40, 1000])
def test_a_name_is_found_by_any_part_of_it(filled: Database, indexed: int) -> None:
    chance = random.Random(7)
    names = ["".join(chance.choices(_WORDS, k=chance.randint(1, 3))) for _ in range(80)]
    filled.write(add_matrices, names)
    filled.write(bind_tx(index_names, now=NOW), limit=indexed)
    every = filled.read(list_matrices)
    for _ in range(100):
        name = chance.choice(names)
        start = chance.randrange(len(name))
        text = name[start : start + chance.randint(1, 8)]
        expected = [matrix.matrix_id for matrix in every if text in matrix.name]
        found = filled.read(numbers, text)
        # Cases of letters may match further ones.
        assert [own for own in found if own in expected] == expected, text
        assert found == sorted(found, reverse=True)


def test_pages_of_a_name_are_the_whole(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_AT_ONCE", 3)
    filled.write(add_matrices, [f"{'nightly' if number % 2 else 'other'} {number}" for number in range(40)])
    filled.write(bind_tx(index_names, now=NOW), limit=30)
    whole = filled.read(numbers, "nightly")
    assert len(whole) == 20
    pages: list[MatrixId] = []
    while page := filled.read(numbers, "nightly", before=pages[-1] if pages else None, limit=3):
        assert len(page) <= 3
        pages += page
    assert pages == whole


def test_names_are_indexed_once_in_their_order(filled: Database) -> None:
    filled.write(add_matrices, ["a", "abcd", "ABCDabcd"])

    def count(connection: Connection) -> int:
        index_names(Tx(connection, NOW), limit=2)
        return connection.exec_driver_sql("SELECT COUNT(*) FROM name_trigrams").scalar_one()

    counts = [filled.write(count) for _ in range(4)]
    assert counts[-1] == counts[-2] > counts[0]
    assert trigrams("ABCDabcd") == {"abc", "bcd", "cda", "dab"}


def test_few_matrices_are_named_by_their_numbers(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FEW", 2)
    filled.write(add_matrices, ["nightly 1", "nightly 2", "nightly 3", "rare"])
    filled.write(bind_tx(index_names, now=NOW), limit=9)

    def few(**which: str) -> tuple[MatrixId, ...] | None:
        chosen = filled.read(with_few_matches, MatrixFilter(**which))  # type: ignore[arg-type]
        return None if chosen is None else chosen.matrix_ids

    assert few(name="rare") == tuple(filled.read(numbers, "rare"))
    assert few(name="nightly") is None
    assert few(submitted_by="user:nobody") == ()
    assert filled.read(with_few_matches, None) is None
