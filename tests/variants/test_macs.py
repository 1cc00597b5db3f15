"""Multiply-accumulates of a network that everyone knows, counted in the files that are built of it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.core.models.contents.counted import file_contents
from farm.variants.build import build_variants
from farm.variants.model_zoo import recipes_of
from farm.variants.sources.source import zoo_source

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("torch") is None or find_spec("onnx") is None, reason="nothing exports"),
]

MOBILENET_V2 = 300_774_272


@contextmanager
def installed_here(_runtime: str, _say: Callable[[str], None]) -> Iterator[Path]:
    """The packages that an environment would have are those of the tests."""
    yield Path(sys.executable)


def test_every_file_of_a_network_multiplies_as_much_as_the_network(tmp_path: Path) -> None:
    recipes = recipes_of(["float32", "int8-core"], ["onnx", "ort"])
    source = zoo_source("mobilenet_v2")
    for variant in build_variants(source, recipes, tmp_path, interpreter=installed_here):
        recipe = variant.manifest.recipe
        contents = file_contents(memoryview(variant.path.read_bytes()), recipe.format)
        assert (contents.macs, contents.macs_uncounted) == (MOBILENET_V2, None), recipe
        assert variant.manifest.flops == 2 * MOBILENET_V2
