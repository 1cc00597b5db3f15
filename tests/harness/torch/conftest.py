"""Fixtures of the tests that run speed_benchmark_torch."""

from tests.support.models.variant_fixtures import variants

__all__ = ["variants"]
