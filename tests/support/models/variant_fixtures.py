"""Fixtures: model variants, which take a while to build."""

import pytest

from farm.variants.build import BuiltVariant
from farm.variants.model_zoo import recipes_of
from tests.support.models.built_variants import built
from tests.support.session.shared_folder import shared_folder


@pytest.fixture(scope="session")
def variants(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> list[BuiltVariant]:
    """MobileNetV2 in both precisions and both formats."""
    folder = shared_folder(tmp_path_factory, worker_id, "variants")
    return built(recipes_of(["float32", "int8-core"], ["torchscript", "lite"]), folder)


@pytest.fixture(scope="session")
def further_variants(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> list[BuiltVariant]:
    """MobileNetV2 in each word of a recipe that those lack."""
    folder = shared_folder(tmp_path_factory, worker_id, "variants")
    recipes = [
        *recipes_of(["int8-full"], ["flatbuffer"], memory_formats=["channels_last"]),
        *recipes_of(["float32"], ["torchscript"], targets=["nnapi"]),
        *recipes_of(["int8-full"], ["lite"], targets=["nnapi"]),
    ]
    return built(recipes, folder)
