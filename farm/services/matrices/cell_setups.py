"""What cells run, as fields: model file, program and flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.engine import Connection

from farm.core.base.ids import VariantId
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.models.builders import is_unoptimized
from farm.core.models.variant import Variant
from farm.core.runs.derived.generation import TokenCounts
from farm.harness.base.adapter import ClockScope, Harness
from farm.services.files.harnesses import adapter_of, default_of_flags
from farm.store.files.programs import Program, programs_by_id
from farm.store.files.variants import variants_by_id
from farm.store.matrices.matrices import CellRow
from farm.wire.documents.matrices.cell_setup import CellSetup

#: The fields of a cell without a model file.
_NO_FILE = dict.fromkeys(("precision", "format", "memory_format", "target", "variant_digest"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSetups:
    """The model files, programs and defaults of cells."""

    variants: Mapping[VariantId, Variant]
    programs: Mapping[int, Program]
    #: By harness.
    defaults: Mapping[str, Mapping[str, SettingValue]]

    def setup(self, cell: CellRow) -> CellSetup:
        """Return what one of these cells runs."""
        variant = None if cell.variant_id is None else self.variants[cell.variant_id]
        records = () if variant is None else (variant.manifest.recipe,)
        file: Mapping[str, object] = _NO_FILE if variant is None else _file_fields(variant)
        return CellSetup.of(
            cell,
            *records,
            **file,
            variant=cell.variant_name,
            changed_settings=non_default_settings(cell.settings, self.defaults[cell.harness]),
            program_digest=self.programs[cell.program_id].digest,
        )

    def clocks(self, baseline: CellRow, candidate: CellRow) -> dict[str, str | bool | None]:
        """Return `clock_fields` of two of these cells."""
        its, own = (
            TimedCell(cell.harness, adapter_of(self.programs[cell.program_id]), cell.settings)
            for cell in (baseline, candidate)
        )
        return clock_fields(its, own)


class TimedCell(NamedTuple):
    """What the clock of a cell follows from."""

    harness: str
    adapter: Harness
    settings: Mapping[str, SettingValue]


def clock_fields(baseline: TimedCell, candidate: TimedCell) -> dict[str, str | bool | None]:
    """Return what the clocks of two cells cover, and over which tokens, and whether that differs.

    A part that cannot differ is None on both sides.
    """
    own, its = candidate.adapter, baseline.adapter
    one_harness = baseline.harness == candidate.harness
    tokens = _tokens(
        own.token_counts(candidate.settings), its.token_counts(baseline.settings), one_harness=one_harness
    )
    if one_harness:
        return {"clock_covers": None, "baseline_clock_covers": None, "clocks_differ": False, **tokens}
    is_stated = own.clock_scope is not ClockScope.UNSTATED
    is_same = own.clock_scope is its.clock_scope if is_stated else own.clock_covers == its.clock_covers
    return {
        "clock_covers": own.clock_covers,
        "baseline_clock_covers": its.clock_covers,
        "clocks_differ": not is_same,
        **tokens,
    }


def _tokens(
    own: TokenCounts | None, its: TokenCounts | None, *, one_harness: bool
) -> dict[str, str | bool | None]:
    """Return the fields about tokens. Of a text, two tools may make different numbers of them."""
    if own is None or its is None or (own == its and (one_harness or isinstance(own.context, int))):
        return {"tokens": None, "baseline_tokens": None, "tokens_differ": False}
    text = "the same text" if own.context == its.context else "another text"
    if own == its:
        text = f"{text}, of which its tokenizer may make other tokens"
    elif not isinstance(own.context, str):
        text = "a text"
    return {
        "tokens": _token_text(own, "a text"),
        "baseline_tokens": _token_text(its, text),
        "tokens_differ": True,
    }


def _token_text(counts: TokenCounts, text: str) -> str:
    """Return numbers of tokens in words, with `text` for the text that some are made of."""
    prompt = f"a prompt of {counts.prompt} tokens and " if counts.prompt else ""
    context = f"{counts.context} tokens" if isinstance(counts.context, int) else text
    beginning = f"{counts.beginning} tokens and " if counts.beginning else ""
    return f"{prompt}{counts.generated} generated tokens timed behind {beginning}{context}"


def _file_fields(variant: Variant) -> dict[str, object]:
    manifest = variant.manifest
    return {
        "variant_digest": manifest.digest,
        "unoptimized": is_unoptimized(manifest),
        "slow_path": manifest.slow_path,
    }


def cell_setups(connection: Connection, cells: Sequence[CellRow]) -> CellSetups:
    """Read what cells run: two statements, and one for each harness without an adapter."""
    variant_ids = {cell.variant_id for cell in cells if cell.variant_id is not None}
    variants = variants_by_id(connection, variant_ids)
    programs = programs_by_id(connection, {cell.program_id for cell in cells})
    harnesses = {cell.harness for cell in cells}
    defaults = {harness: default_of_flags(connection, harness) for harness in harnesses}
    return CellSetups(variants=variants, programs=programs, defaults=defaults)
