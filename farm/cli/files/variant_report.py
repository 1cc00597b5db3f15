"""The report of one variant: its manifest and its fidelity to float32."""

import re
from collections.abc import Iterator, Sequence

from rich.text import Text

from farm.cli.shell.formatting import EMPTY_CELL, local_time_text
from farm.core.base.spec_errors import name_hint
from farm.core.base.units import size_text
from farm.core.errors import NotFound
from farm.core.models.variant import Fidelity, TensorSpec
from farm.wire.documents.matrices.matrices import VariantView

_DIGEST_PREFIX = re.compile(r"[0-9a-f]{6,64}")


def select_variant(views: Sequence[VariantView], name: str) -> VariantView:
    """Return the newest variant with that name, or the one with that digest prefix.

    Raises:
        NotFound: there is none, or the prefix is not unique.
    """
    if named := [view for view in views if view.name == name]:
        return max(named, key=lambda view: view.variant_id)
    if _DIGEST_PREFIX.fullmatch(name):
        by_digest = {view.manifest.digest: view for view in views if view.manifest.digest.startswith(name)}
        if len(by_digest) == 1:
            return next(iter(by_digest.values()))
    hint = name_hint(name, [view.name for view in views]) or "`farm variant build MODEL` builds some"
    raise NotFound(f"there is no variant {name!r}", hint=hint)


def variant_report(view: VariantView) -> Text:
    """Return the report of a variant."""
    return Text("\n").join([Text(view.name, style="bold"), *map(Text, _lines(view))])


def fidelity_text(fidelity: Fidelity | None) -> str:
    """Return the correlation of the outputs with those of float32."""
    return EMPTY_CELL if fidelity is None else f"{fidelity.correlation:.3f}"


def input_texts(inputs: Sequence[TensorSpec]) -> str:
    """Return `1x3x224x224 float32`; `-` if the inputs are unknown."""
    return ", ".join(f"{'x'.join(map(str, spec.shape))} {spec.dtype}" for spec in inputs) or EMPTY_CELL


def _lines(view: VariantView) -> Iterator[str]:
    manifest = view.manifest
    recipe = manifest.recipe
    yield _field(
        "recipe", f"{recipe.precision}, {recipe.format}, {recipe.memory_format}, for {recipe.target}"
    )
    yield _field("file", f"{size_text(manifest.size_bytes)}, {manifest.digest}")
    yield _field("backends", ", ".join(manifest.backends))
    yield _field("inputs", input_texts(manifest.inputs))
    yield _field("parameters", _count(manifest.parameters))
    counted = ", 2 x MAC, of the float32 network" if manifest.flops is not None else ""
    yield _field("FLOPs", _count(manifest.flops) + counted)
    yield _field("fidelity", _fidelity_line(manifest.fidelity))
    yield _field(
        "built with", ", ".join(f"{tool} {version}" for tool, version in manifest.built_with.items())
    )
    yield _field("registered", local_time_text(view.created_at))


def _fidelity_line(fidelity: Fidelity | None) -> str:
    if fidelity is None:
        return "not compared with float32"
    return (
        f"with float32 on {fidelity.inputs} inputs: correlation {fidelity.correlation:.4f}, largest"
        f" difference {fidelity.max_difference:.3g}, same best class for {fidelity.top1_share:.0%}"
    )


def _count(number: int | None) -> str:
    return EMPTY_CELL if number is None else f"{number:,}".replace(",", " ")


def _field(name: str, text: str) -> str:
    return f"{name:11}{text or EMPTY_CELL}"
