"""Manifests as JSON files, beside their variants."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from farm.core.errors import VariantInvalid
from farm.core.models.variant import Manifest

_MANIFEST = TypeAdapter(Manifest)


def manifest_path(variant_path: Path) -> Path:
    """Return the path of a variant file's manifest."""
    return variant_path.with_name(variant_path.name + ".json")


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write a manifest; the file is replaced atomically."""
    draft = path.with_name(path.name + ".part")
    draft.write_bytes(_MANIFEST.dump_json(manifest, indent=2) + b"\n")
    draft.replace(path)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        VariantInvalid: there is none, or it is not a manifest.
    """
    try:
        return _MANIFEST.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise VariantInvalid(f"{path}: not a manifest: {error}") from error
