"""The digest of a variant's recipe: equal digests mean that the file need not be built again."""

import hashlib
import json
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from farm.core.base.ids import Digest, digest_of
from farm.core.errors import InvalidInput
from farm.core.models.builders import TORCH, runtime_of
from farm.core.models.variant import Precision, Recipe
from farm.variants.model_zoo import check_recipe, get_zoo_model
from farm.variants.pins import pinned_versions

#: The modules whose code determines the bytes of the file; those of other runtimes have one more.
_BUILDER_SOURCES = ("networks.py", "export.py", "worker.py")
_PACKAGES = ("torch", "torchvision")
SEED = 20
#: The engine of mobile devices; its per-tensor weights are also the only ones that NNAPI takes.
QCONFIG = "qnnpack"


def recipe_digest(model: str, recipe: Recipe) -> Digest:
    """Return the digest over model, recipe, builder sources and versions, without importing torch.

    Raises:
        InvalidInput: the model or recipe cannot be built, or torch is not installed.
    """
    get_zoo_model(model)
    check_recipe(recipe)
    ingredients = {
        "model": model,
        "recipe": asdict(recipe),
        "built_with": built_with(recipe),
        "sources": {name: _source_digest(name) for name in _sources(recipe)},
    }
    return digest_of(json.dumps(ingredients, sort_keys=True).encode())


def built_with(recipe: Recipe) -> dict[str, str]:
    """Return names and versions of the build tools: as installed for torch, as pinned for other runtimes.

    Raises:
        InvalidInput: torch or torchvision is not installed.
    """
    weights = {"weights": f"random, seed {SEED}"}
    if (runtime := runtime_of(recipe.format)) != TORCH:
        return {**pinned_versions(runtime), **weights}
    quantized = {} if recipe.precision == Precision.FLOAT32 else {"qconfig": QCONFIG}
    versions = {package: _installed_version(package) for package in _PACKAGES}
    return {**versions, **weights, **quantized}


def _sources(recipe: Recipe) -> tuple[str, ...]:
    runtime = runtime_of(recipe.format)
    return _BUILDER_SOURCES if runtime == TORCH else (*_BUILDER_SOURCES, f"exporters/{runtime}.py")


def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise InvalidInput(
            f"{package} is not installed, so no variant can be built",
            hint="`make install` installs torch, then torchvision without its dependencies;"
            " or add a file made elsewhere",
        ) from error


def _source_digest(name: str) -> str:
    source = (Path(__file__).parent / name).read_bytes()
    return hashlib.sha256(source).hexdigest()
