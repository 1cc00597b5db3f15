"""Variants that tests really build: once in a test run, in a folder that its workers share."""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from farm.core.models.variant import Recipe
from farm.variants.build import BuiltVariant, build_variants
from farm.variants.sources.source import zoo_source


def shared_variant_folder(factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Where they are built; the same for all workers of one test run."""
    base = factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "variants"
    folder.mkdir(exist_ok=True)
    return folder


def built(recipes: Sequence[Recipe], folder: Path) -> list[BuiltVariant]:
    """MobileNetV2 by these recipes; what is there already is not built again."""
    with _one_at_a_time(folder / "lock"):
        return list(build_variants(zoo_source("mobilenet_v2"), recipes, folder))


@contextmanager
def _one_at_a_time(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
