"""Files that several contract tests need and that take a while to make."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from farm.variants.build import BuiltVariant, build_variants
from farm.variants.catalogue import recipes_of


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def variant_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Where variants are built; the workers of one test run share it, so that each is built once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "variants"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def variants(variant_folder: Path) -> list[BuiltVariant]:
    """MobileNetV2 in both precisions and both formats."""
    recipes = recipes_of(["float32", "int8-core"], ["torchscript", "lite"])
    with one_at_a_time(variant_folder / "lock"):
        return list(build_variants("mobilenet_v2", recipes, variant_folder))
