"""Measurements as they are read."""

from farm.store.results.measurements import Measurement


def test_a_measurement_of_another_round_differs_by_the_round_only() -> None:
    measured = Measurement._make(range(len(Measurement._fields)))
    assert measured.in_round(99) == measured._replace(round=99)
