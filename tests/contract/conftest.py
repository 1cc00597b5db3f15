"""Files that several contract tests need and that take a while to make."""

import pytest
from built_variants import built, shared_variant_folder

from farm.variants.build import BuiltVariant
from farm.variants.catalogue import recipes_of


@pytest.fixture(scope="session")
def variants(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> list[BuiltVariant]:
    """MobileNetV2 in both precisions and both formats."""
    folder = shared_variant_folder(tmp_path_factory, worker_id)
    return built(recipes_of(["float32", "int8-core"], ["torchscript", "lite"]), folder)
