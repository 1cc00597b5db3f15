"""The tests can fail: with a piece of enforcement taken out, the test that attacks it does."""

import re
from pathlib import Path

import pytest

from tests.architecture.reliability.invariants import PROMISES
from tests.architecture.reliability.marks import TESTS
from tests.architecture.reliability.mutants import MUTANTS, ROOT, Mutant, copy_project, survives

SAMPLED = [mutant for mutant in MUTANTS if mutant.sampled]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_project(tmp_path_factory.mktemp("project"))


@pytest.mark.long
@pytest.mark.parametrize("mutant", SAMPLED, ids=[mutant.name for mutant in SAMPLED])
def test_what_is_taken_out_is_missed(mutant: Mutant, copy: Path) -> None:
    assert survives(copy, mutant) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_what_a_mutant_takes_out_is_there_once(mutant: Mutant) -> None:
    for change in mutant.changes:
        assert (ROOT / change.file).read_text(encoding="utf-8").count(change.old) == 1, change


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_test_that_misses_it_is_there(mutant: Mutant) -> None:
    file, name = mutant.test.partition("[")[0].split("::")
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.M)
    assert (ROOT / file).is_relative_to(TESTS)


def test_every_invariant_has_a_mutant() -> None:
    assert set(PROMISES) - {name for mutant in MUTANTS for name in mutant.invariants} == set()
