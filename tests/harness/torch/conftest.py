"""Fixtures of the tests that run speed_benchmark_torch."""

from tests.support.models.variant_fixtures import further_variants, variants

__all__ = ["further_variants", "variants"]
