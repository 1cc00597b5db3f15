"""docs/reliability.md: the words of the YAML files, the tests that marks name, the mutants."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from farm.core.jobs.retry import CHRONIC_AFTER, MAX_ATTEMPTS, MAX_BLOCKS, MAX_RETURNS, RETRY_BUDGETS
from tests.architecture.reliability.invariants import PROMISES, SCENARIOS, Rule
from tests.architecture.reliability.marks import Marked, marked_tests
from tests.architecture.reliability.mutants import MUTANTS, Mutant

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reliability.md"
_HEAD = Path(__file__).parent / "head.md"


def page() -> str:
    """The page as it should be."""
    marked = marked_tests()
    return "".join([_head(), *_invariants(marked), *_scenarios(marked), *_lists(marked)])


def attacks(marked: Sequence[Marked]) -> Mapping[str, list[Marked]]:
    """The tests that attack each invariant, where there are any."""
    found = {name: [test for test in marked if name in test.invariants] for name in PROMISES}
    return {name: tests for name, tests in found.items() if tests}


def plays(marked: Sequence[Marked]) -> Mapping[int, list[Marked]]:
    """The tests that play each scenario, where there are any."""
    found = {number: [test for test in marked if number in test.faults] for number in SCENARIOS}
    return {number: tests for number, tests in found.items() if tests}


def _head() -> str:
    return _HEAD.read_text(encoding="utf-8").format(
        budgets="\n".join(f"| {lost_to} | {budget} |" for lost_to, budget in RETRY_BUDGETS.items()),
        attempts=MAX_ATTEMPTS,
        return_count=MAX_RETURNS,
        blocks=MAX_BLOCKS,
        chronic=CHRONIC_AFTER,
    )


def _invariants(marked: Sequence[Marked]) -> Iterable[str]:
    found = attacks(marked)
    yield _row("", "promise", "enforced by", "tests", "removing it is seen by") + _row(*["---"] * 5)
    for name, promise in PROMISES.items():
        rules = "<br>".join(map(_rule, promise.rules))
        count = len(found.get(name, ()))
        mutants = "<br>".join(_mutant(mutant) for mutant in MUTANTS if name in mutant.invariants)
        tests = f"[{count}](#tests-of-{name.lower()})" if count else "none"
        yield _row(name, promise.text, rules, tests, mutants or "none")


def _scenarios(marked: Sequence[Marked]) -> Iterable[str]:
    found = plays(marked)
    yield "\n## Faults\n\nWhat can go wrong, what is expected to follow, and the tests that play it.\n"
    for number, scenario in SCENARIOS.items():
        if scenario.under:
            yield f"\n### {scenario.under}\n\n" + _row("", "fault", "expected", "tests") + _row(*["---"] * 4)
        tests = "<br>".join(map(_link, found.get(number, ()))) or "**none**"
        yield _row(str(number), scenario.fault, scenario.expected, tests)
    without = [str(number) for number in SCENARIOS if number not in found]
    yield f"\nWithout a test of their own: {', '.join(without) or 'none'}.\n"


def _lists(marked: Sequence[Marked]) -> Iterable[str]:
    yield "\n## Tests by invariant\n"
    for name, tests in attacks(marked).items():
        lines = "\n".join(f"- {_link(test)}" for test in tests)
        yield f"\n### Tests of {name}\n\n{lines}\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _rule(rule: Rule) -> str:
    return f"{rule.what} ([{Path(rule.file).name}](../{rule.file}))"


def _link(test: Marked) -> str:
    return f"[{_words(test.name)}](../tests/{test.file})"


def _mutant(mutant: Mutant) -> str:
    file, _, name = mutant.test.partition("::")
    return f"{mutant.without}: [{_words(name.partition('[')[0])}](../{file})"


def _words(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")
