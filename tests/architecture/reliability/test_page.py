"""docs/reliability.md tells what the tests and the code say; BENCHFARM_DRAW=1 draws it anew."""

import os
from pathlib import Path

import pytest

from tests.architecture.reliability.invariants import PROMISES, SCENARIOS, Rule
from tests.architecture.reliability.marks import marked_tests
from tests.architecture.reliability.page import PAGE, attacks, page

ROOT = Path(__file__).resolve().parents[3]
RULES = [(name, rule) for name, promise in PROMISES.items() for rule in promise.rules]


def test_the_page_is_as_the_tests_and_the_code_say() -> None:
    if os.environ.get("BENCHFARM_DRAW"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "stale: draw it anew with BENCHFARM_DRAW=1"


def test_every_invariant_is_attacked_by_a_test() -> None:
    assert set(PROMISES) - set(attacks(marked_tests())) == set()


def test_every_promise_and_every_fault_has_a_quick_test() -> None:
    """What only `make test-long` tries is told of too late."""
    tests = marked_tests()
    quick = [test for test in tests if not test.is_long]
    assert set(PROMISES) - {name for test in quick for name in test.invariants} == set()
    played = {number for test in tests for number in test.faults}
    assert played - {number for test in quick for number in test.faults} == set()


def test_a_test_is_long_by_its_mark_its_files_or_a_postgresql(tmp_path: Path) -> None:
    attack = '@pytest.mark.invariant("I1")\n'
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.fixture\ndef lab(postgres): ...\n"
        f"{attack}def test_a(): ...\n"
        f"@pytest.mark.long\n{attack}def test_b(): ...\n"
        f"{attack}def test_c(lab): ...\n"
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.long), 2])\n'
        f"{attack}def test_d(x): ...\n"
    )
    (tmp_path / "test_storm.py").write_text(
        f"import pytest\npytestmark = [pytest.mark.long, pytest.mark.timeout(9)]\n{attack}def test_e(): ...\n"
    )
    long = {test.name: test.is_long for test in marked_tests(tmp_path)}
    assert long == {"test_a": False, "test_b": True, "test_c": True, "test_d": False, "test_e": True}


def test_marks_name_what_exists() -> None:
    unknown = [
        test
        for test in marked_tests()
        if not set(test.invariants) <= set(PROMISES) or not set(test.faults) <= set(SCENARIOS)
    ]
    assert unknown == []


@pytest.mark.parametrize(("name", "rule"), RULES, ids=[f"{name} {rule.what}" for name, rule in RULES])
def test_what_enforces_an_invariant_is_where_the_page_says(name: str, rule: Rule) -> None:
    assert rule.anchor in (ROOT / rule.file).read_text(encoding="utf-8")


def test_a_mark_is_found_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        '@pytest.mark.invariant("I1", "I2")\n@pytest.mark.fault(3)\ndef test_a(): ...\n'
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.fault(7))])\n'
        "async def test_b(x): ...\n"
        'TestC = pytest.mark.invariant("I13")(object)\n'
        "def test_d(): ...\n"
    )
    found = {test.name: (test.invariants, test.faults) for test in marked_tests(tmp_path)}
    assert found == {"test_a": (("I1", "I2"), (3,)), "test_b": ((), (7,)), "TestC": (("I13",), ())}
