"""Documents that register a variant, and correct what is stated of it."""

from typing import Annotated

from pydantic import Field, field_validator

from farm.core.base.ids import is_digest
from farm.core.models.variant import MOST_INPUTS, NAME_RULE, Manifest, TensorSpec, find_invalid_name
from farm.wire.base import Wire


class VariantChange(Wire):
    """POST /api/v1/variants/{id}/manifest: what its file states is read again, too."""

    #: The network's other name, as long as no matrix runs the variant.
    model: str | None = None
    #: Declared inputs: they complete those of the file, or are in place of those that it does not state.
    inputs: Annotated[tuple[TensorSpec, ...], Field(max_length=MOST_INPUTS)] = ()


class VariantRegistration(Wire):
    """POST /api/v1/variants: the file itself goes to PUT /api/v1/blobs/{digest} first."""

    manifest: Manifest

    @field_validator("manifest")
    @classmethod
    def _is_named_as_matrices_can(cls, manifest: Manifest) -> Manifest:
        if (word := find_invalid_name(manifest)) is not None:
            raise ValueError(f"{word[:80]!r} is no name: {NAME_RULE}")
        if not manifest.backends:
            raise ValueError("a variant runs on one backend at least")
        if not is_digest(manifest.recipe_digest):
            raise ValueError("recipe_digest is no digest")
        return manifest
