"""Variants, by the connection of a client."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from farm.client.connection import FarmConnection
from farm.client.result_queries import time_text
from farm.core.base.ids import VariantId
from farm.core.models.variant import Manifest, TensorSpec, Variant
from farm.wire.documents.files.variants import VariantChange, VariantRegistration


class VariantQueries(FarmConnection):
    """What a client asks of variants, and changes of them."""

    def variants(self) -> list[Variant]:
        return self._list(list[Variant], "/variants", lambda variant: variant.variant_id)

    def newest_variants(
        self,
        *,
        since: datetime | None = None,
        name: str | None = None,
        mine: bool = False,
        every: bool = False,
        limit: int | None = None,
    ) -> Iterator[Variant]:
        """Yield the variants since a time, of a name or of the caller, newest first, up to `limit`.

        With `every`, files that newer ones of their name replaced, too.
        """
        return self._pages(
            list[Variant],
            "/variants/newest",
            lambda variant: variant.variant_id,
            newest_first=True,
            limit=limit,
            since=time_text(since),
            name=name,
            mine=mine or None,
            all=every or None,
        )

    def register_variant(self, manifest: Manifest) -> Variant:
        """Register a file whose bytes the farm has; the same manifest again changes nothing."""
        body = VariantRegistration(manifest=manifest).model_dump(mode="json")
        return self._post(Variant, "/variants", body)

    def change_variant(
        self, variant_id: VariantId, *, model: str | None = None, inputs: Sequence[TensorSpec] = ()
    ) -> Variant:
        """Rename a variant's model, declare its inputs, or with neither have the farm read its file again."""
        body = VariantChange(model=model, inputs=tuple(inputs)).model_dump(mode="json")
        return self._post(Variant, f"/variants/{variant_id}/manifest", body)
