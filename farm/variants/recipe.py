"""The digest of a variant's recipe: equal digests mean that the file need not be built again."""

import hashlib
import json
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from farm.core.base.ids import Digest, digest_of
from farm.core.errors import InvalidInput
from farm.core.models.builders import TORCH, abi_of, environment_of, is_tuned, runtime_of
from farm.core.models.variant import Precision, Recipe
from farm.variants.environments.pins import pinned_versions
from farm.variants.model_zoo import check_recipe
from farm.variants.sources.source import Source, SourceKind, check_source, source_digests, weights_text

#: The modules whose code determines the bytes of the file; those of other runtimes and sources have more.
_BUILDER_SOURCES = ("networks.py", "export.py", "worker.py", "sources/samples.py")
_PACKAGES = ("torch", "torchvision")
SEED = 20
#: The engine of mobile devices; its per-tensor weights are also the only ones that NNAPI takes.
QCONFIG = "qnnpack"


def recipe_digest(
    source: Source, recipe: Recipe, content: Digest | None = None, *, records: Digest | None = None
) -> Digest | None:
    """Return the digest over source, recipe, builder sources and versions, without importing torch.

    Args:
        source: the network.
        recipe: what is made of it.
        content: digest of the built file; a part of the digest where the source is any code.
        records: digest of the tuning records that order the loops.

    Returns:
        None where only the built file tells what it is: of a factory, and of what is tuned, before it was
        built.

    Raises:
        InvalidInput: the recipe cannot be built from the source, or torch is not installed.
        VariantInvalid: a file of the source cannot be read.
    """
    check_recipe(recipe)
    check_source(source, recipe)
    is_open = not source.is_reproducible and content is None
    if is_open or (is_tuned(recipe) and records is None):
        return None
    ingredients: dict[str, object] = {
        "model": source.model,
        "recipe": asdict(recipe),
        "built_with": built_with(source, recipe),
        "sources": {name: _source_digest(name) for name in _sources(source, recipe)},
    }
    if source.kind is not SourceKind.ZOO or source.state_dict or source.model != source.origin:
        ingredients["source"] = source_digests(source)
    if not source.is_reproducible:
        ingredients["content"] = content
    if records is not None:
        ingredients["records"] = records
    return digest_of(json.dumps(ingredients, sort_keys=True).encode())


def built_with(source: Source, recipe: Recipe) -> dict[str, str]:
    """Return names and versions of the build tools: as installed for torch, as pinned for other runtimes.

    Raises:
        InvalidInput: torch or torchvision is not installed.
        VariantInvalid: a file of the source cannot be read.
    """
    weights = {"weights": weights_text(source, SEED)}
    if (environment := environment_of(recipe)) != TORCH:
        return {**pinned_versions(environment), **weights}
    quantized = {} if recipe.precision == Precision.FLOAT32 else {"qconfig": QCONFIG}
    versions = {package: _installed_version(package) for package in _PACKAGES}
    return {**versions, **weights, **quantized}


def host_abi() -> str:
    """Return the ABI of this machine, as Android names it."""
    return {"aarch64": "arm64-v8a"}.get(platform.machine(), platform.machine())


def runs_here(recipe: Recipe) -> bool:
    """Return whether this machine's CPU can run the file."""
    return abi_of(recipe) in (None, host_abi())


def _sources(source: Source, recipe: Recipe) -> tuple[str, ...]:
    runtime = runtime_of(recipe.format)
    own = () if source.kind is SourceKind.ZOO else ("sources/user_network.py",)
    exporters = () if runtime == TORCH else (f"exporters/{runtime}.py",)
    tuned = ("exporters/tuning/metaschedule.py",) if is_tuned(recipe) else ()
    return (*_BUILDER_SOURCES, *own, *exporters, *tuned)


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
