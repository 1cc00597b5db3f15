"""Fixtures of the tests that build variants."""

from tests.support.models.variant_fixtures import further_variants, variants

__all__ = ["further_variants", "variants"]
