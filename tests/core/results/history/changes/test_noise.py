"""Medians of what series measured, of which some have nothing."""

import numpy as np

from farm.core.results.history.changes.noise import row_medians


def test_a_median_is_of_what_is_known() -> None:
    medians, counts = row_medians(np.array([[1.0, np.nan, 3.0], [np.nan] * 3, [5.0, 7.0, 6.0]]))
    assert np.array_equal(medians, [2.0, np.nan, 6.0], equal_nan=True)
    assert counts.tolist() == [2, 0, 3]


def test_without_any_session_no_median_is_known() -> None:
    medians, counts = row_medians(np.empty((2, 0)))
    assert np.isnan(medians).all()
    assert counts.tolist() == [0, 0]
