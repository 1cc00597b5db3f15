"""Variants that tests really build: once in a test run, in a folder that its workers share."""

from collections.abc import Sequence
from pathlib import Path

from farm.core.models.variant import Recipe
from farm.variants.build import BuiltVariant, build_variants
from farm.variants.sources.source import zoo_source
from tests.support.session.shared_folder import one_at_a_time


def built(recipes: Sequence[Recipe], folder: Path) -> list[BuiltVariant]:
    """MobileNetV2 by these recipes; what is there already is not built again."""
    with one_at_a_time(folder):
        return list(build_variants(zoo_source("mobilenet_v2"), recipes, folder))
