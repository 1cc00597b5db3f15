"""The model file of `farm run` and `farm compare`: the variant that a file is, or that a name means."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from farm.cli.files.local_variants import manifest_of_file
from farm.cli.files.variant import select_variant
from farm.core.errors import NotFound
from farm.core.models.variant import Manifest, Precision, Variant
from farm.wire.documents.files.programs import HarnessView

_NNAPI = "nnapi"


def named_variant(variants: Sequence[Variant], word: str, *, hint: str | None = None) -> Variant:
    """Return the variant that a name or digest means, where there is no file of that name.

    Raises:
        NotFound: there is no such variant; `hint` is said instead of the names that are like it.
    """
    try:
        return select_variant(variants, word)
    except NotFound as error:
        other = f"there is no such file, and the farm has no such variant; {error.hint}"
        raise NotFound(f"there is no {word!r}", hint=hint or other) from error


def file_manifest(
    path: Path,
    harness: HarnessView,
    *,
    model: str | None = None,
    precision: str | None = None,
    inputs: Sequence[str] = (),
) -> Manifest:
    """Return the manifest of a file, with the backends of a generic harness among its own."""
    manifest = manifest_of_file(path, model=model, precision=precision or Precision.UNSTATED, inputs=inputs)
    if harness.definition is None:
        return manifest
    return replace(manifest, backends=_supported_backends(manifest, harness.backends))


def same_files(
    variants: Sequence[Variant], manifest: Manifest, *, model: str | None = None, precision: str | None = None
) -> list[Variant]:
    """Return the variants of a file that the farm still has, of that model and precision, oldest first."""
    return [
        view
        for view in variants
        if view.manifest.digest == manifest.digest and view.expired_at is None
        if model in (None, view.manifest.model)
        if precision in (None, view.manifest.recipe.precision)
    ]


def has_own_name(variants: Sequence[Variant], view: Variant) -> bool:
    """Tell whether the name of a variant still means its file: another one may have it."""
    return select_variant(variants, view.name).manifest.digest == view.manifest.digest


def _supported_backends(manifest: Manifest, backends: Sequence[str]) -> tuple[str, ...]:
    """Return the backends of the format and those of a generic harness.

    NNAPI is left out, as it needs a converted file.
    """
    offered = [backend for backend in backends if backend != _NNAPI]
    return tuple(dict.fromkeys([*manifest.backends, *offered]))
