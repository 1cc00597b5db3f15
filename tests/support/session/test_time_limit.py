"""Long tests that would begin after the limit of a run are skipped, quick ones are not."""

import pytest

from tests.support.session.time_limit import UNTIL, TimeLimit

pytest_plugins = ["pytester"]


@pytest.fixture
def items(pytester: pytest.Pytester) -> dict[str, pytest.Item]:
    pytester.makeini("[pytest]\nmarkers =\n  long\n  hypothesis\n")
    pytester.makepyfile(
        "import pytest\n"
        "def test_quick(): ...\n"
        "@pytest.mark.long\n"
        "def test_storm(): ...\n"
        "@pytest.mark.hypothesis\n"
        "def test_property(): ...\n"
    )
    found, _ = pytester.inline_genitems("-p", "no:schemathesis")
    return {item.name: item for item in found}


def skipped(items: dict[str, pytest.Item], *, now_s: float) -> set[str]:
    names = set()
    for name, item in items.items():
        try:
            TimeLimit(now_s=lambda: now_s).pytest_runtest_setup(item)
        except pytest.skip.Exception:
            names.add(name)
    return names


def test_long_tests_are_skipped_after_the_limit(
    items: dict[str, pytest.Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(UNTIL, "1000")
    assert skipped(items, now_s=999.0) == set()
    assert skipped(items, now_s=1001.0) == {"test_storm", "test_property"}


def test_a_run_without_a_limit_skips_none(
    items: dict[str, pytest.Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(UNTIL, raising=False)
    assert skipped(items, now_s=1e12) == set()
