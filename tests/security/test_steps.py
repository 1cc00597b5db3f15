"""The quick steps of `make security`."""

from tests.security.__main__ import check_rules


def test_the_rules_of_security_that_the_project_has_find_nothing() -> None:
    is_clean, text = check_rules()
    assert is_clean, text
