"""A row of the calibration says what it allows beyond its aim."""

import pytest

from benchmarks.calibration_row import at_most


@pytest.mark.parametrize(
    ("value", "allowed", "words", "verdict"),
    [
        (0.026, 0.004, "<= 2.5%, two errors allowed", "MET"),
        (0.03, 0.004, "<= 2.5%, two errors allowed", "MISSED"),
        (0.025, 0.0, "<= 2.5%", "MET"),
        (0.026, 0.0, "<= 2.5%", "MISSED"),
    ],
)
def test_a_row_names_its_aim_and_what_is_allowed_beyond_it(
    value: float, allowed: float, words: str, verdict: str
) -> None:
    row = str(at_most("gates that pass", value, 0.025, allowed=allowed))
    assert row.split(maxsplit=4)[4].removesuffix(verdict).strip() == words
    assert row.endswith(f" {verdict}")
