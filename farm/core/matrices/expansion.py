"""Expansion of a matrix into cells, with a reason for every rejected cell."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from farm.core.base.spec_errors import SpecProblem, matrix_invalid
from farm.core.devices.controls import Controls
from farm.core.devices.selector import KnownDevice, select_devices
from farm.core.errors import MatrixInvalid
from farm.core.matrices.allowed_values import allowed_values
from farm.core.matrices.axes import check_size, expand_axes, type_axes
from farm.core.matrices.baseline import Baseline, resolve_baseline
from farm.core.matrices.compatibility import find_incompatibility
from farm.core.matrices.matrix import (
    CellAssignment,
    CellKey,
    Expansion,
    KnownHarness,
    KnownVariant,
    MatrixPlan,
    RejectedCell,
    RejectionKind,
    Slot,
    has_all,
)
from farm.core.models.variant import BACKEND_AXIS, Format, Precision, Recipe, build_command, variant_name

#: Of phones that a refusal is about, so many are named.
_DEVICES_SHOWN = 10
#: Without a file where the harness runs no model.
_Runnable = tuple[CellKey, KnownVariant | None]


def expand(
    plan: MatrixPlan,
    *,
    variants: Sequence[KnownVariant],
    harness: KnownHarness,
    devices: Sequence[KnownDevice],
) -> Expansion:
    """Say what a matrix comes to. The same arguments in the same order give the same cells.

    Of several files of one model and recipe, the one registered last is meant.

    Raises:
        MatrixInvalid: a name or value the farm does not know, a value of the wrong type, a rule or baseline
            that fits no cell, a cell that is there twice, too many cells, or none that can run.
        SelectorEmpty: a selector fits no device.
    """
    words = type_axes(plan, allowed_values(harness, variants))
    chosen = select_devices(plan.selectors, devices)
    check_size(plan, words, devices=len(chosen))
    keys, excluded = expand_axes(words, harness)
    runnable, impossible = _split_impossible(keys, variants, harness)
    runnable_keys = [key for key, _ in runnable]
    baseline = resolve_baseline(words, harness, runnable_keys, [*excluded, *impossible])
    slots = _slots(runnable, baseline, {**harness.defaults, **words.settings}, aa=plan.aa)
    placements, unfit = _on_devices(slots, chosen, harness, plan.controls)
    rejected = (*excluded, *impossible, *unfit)
    if not placements:
        raise _no_runnable_cell_error(rejected)
    anchor = baseline.anchor if baseline else None
    return Expansion(slots=tuple(slots), placements=tuple(placements), rejected=rejected, anchor=anchor)


def _split_impossible(
    keys: Sequence[CellKey], variants: Sequence[KnownVariant], harness: KnownHarness
) -> tuple[list[_Runnable], list[RejectedCell]]:
    variant_by_key = _newest_variants(variants)
    runnable: list[_Runnable] = []
    impossible: list[RejectedCell] = []
    for key in keys:
        fate = _resolve_variant(key, variant_by_key, harness)
        if isinstance(fate, RejectedCell):
            impossible.append(fate)
        else:
            runnable.append((key, fate))
    return runnable, impossible


_VariantKey = tuple[str, Recipe]


def _newest_variants(variants: Sequence[KnownVariant]) -> dict[_VariantKey, KnownVariant]:
    by_age = sorted(variants, key=lambda variant: variant.variant_id)
    return {(variant.manifest.model, variant.manifest.recipe): variant for variant in by_age}


def _variant_key(key: CellKey) -> _VariantKey:
    optional = {axis: str(key[axis]) for axis in ("memory_format", "target") if axis in key}
    recipe = Recipe(precision=Precision(str(key["precision"])), format=Format(str(key["format"])), **optional)
    return str(key["model"]), recipe


def _resolve_variant(
    key: CellKey, variant_by_key: Mapping[_VariantKey, KnownVariant], harness: KnownHarness
) -> KnownVariant | RejectedCell | None:
    """Return the file of a cell, or why it has none; None where no file is needed."""
    backend = str(key[BACKEND_AXIS])
    if not harness.needs_model:
        reason = harness.unsupported(None, backend)
        return None if reason is None else _unsupported(key, reason)
    variant = variant_by_key.get(_variant_key(key))
    if variant is None:
        return _no_variant(key)
    reason = harness.unsupported(variant.manifest, backend)
    if reason is None and backend not in variant.manifest.backends:
        reason = f"the file is made for {', '.join(variant.manifest.backends)}, not for {backend}"
    if reason is not None:
        return _unsupported(key, reason)
    return _expired_variant(key) if variant.expired else variant


def _unsupported(key: CellKey, reason: str) -> RejectedCell:
    return RejectedCell(key=key, rejection=RejectionKind.UNSUPPORTED, reason=reason)


def _no_variant(key: CellKey) -> RejectedCell:
    model, recipe = _variant_key(key)
    return RejectedCell(
        key=key,
        rejection=RejectionKind.NO_VARIANT,
        reason=f"no such file of {model} is registered",
        hint=f"`{build_command(model, recipe)}`",
    )


def _expired_variant(key: CellKey) -> RejectedCell:
    model, recipe = _variant_key(key)
    return RejectedCell(
        key=key,
        rejection=RejectionKind.EXPIRED,
        reason=f"the file of {variant_name(model, recipe)} expired",
        hint=f"`{build_command(model, recipe)}` sends it again, `farm variant add` what was made elsewhere",
    )


def _slots(
    runnable: Sequence[_Runnable], baseline: Baseline | None, settings: CellKey, *, aa: bool
) -> list[Slot]:
    """Return cells in matrix order, each A/A duplicate directly after its baseline."""
    entries: list[tuple[CellKey, KnownVariant | None, int]] = []
    for key, variant in runnable:
        entries.append((key, variant, 1))
        if aa and baseline is not None and has_all(key, baseline.values):
            entries.append((key, variant, 2))
    position = {tuple(key.values()): n for n, (key, _, replica) in enumerate(entries) if replica == 1}
    own = [
        None if baseline is None else position.get(tuple(baseline.of(key).values())) for key, _, _ in entries
    ]
    return [
        Slot(
            key=key,
            variant_id=None if variant is None else variant.variant_id,
            backend=str(key[BACKEND_AXIS]),
            settings={flag: key.get(flag, value) for flag, value in settings.items()},
            replica=replica,
            baseline=None if own[number] == number else own[number],
            is_baseline=own[number] == number,
        )
        for number, (key, variant, replica) in enumerate(entries)
    ]


def _on_devices(
    slots: Sequence[Slot], devices: Sequence[KnownDevice], harness: KnownHarness, controls: Controls
) -> tuple[list[CellAssignment], list[RejectedCell]]:
    placements: list[CellAssignment] = []
    rejected: list[RejectedCell] = []
    # Whether a phone can run a cell depends on its ABIs and root alone: asked once for phones of a kind.
    unfit_by_kind: dict[tuple[object, ...], dict[int, RejectedCell]] = {}
    first = 0
    for device in devices:
        kind = (*device.facts.abis, device.facts.root)
        if kind not in unfit_by_kind:
            unfit_by_kind[kind] = _incompatible_slots(slots, device, harness, controls)
        unfit = unfit_by_kind[kind]
        numbers = [number for number in range(len(slots)) if number not in unfit] if unfit else None
        fit = range(len(slots)) if numbers is None else tuple(numbers)
        if fit:
            placements.append(CellAssignment(device_id=device.device_id, first=first, slots=fit))
            first += len(fit)
        rejected += [
            replace(cell, device_id=device.device_id)
            for number, cell in unfit.items()
            if slots[number].replica == 1
        ]
    return placements, rejected


def _incompatible_slots(
    slots: Sequence[Slot], device: KnownDevice, harness: KnownHarness, controls: Controls
) -> dict[int, RejectedCell]:
    """Return, by number, the slots that a device cannot run."""
    found = (
        (number, find_incompatibility(device, harness, slot.key, slot.settings, controls))
        for number, slot in enumerate(slots)
    )
    return {number: rejection for number, rejection in found if rejection is not None}


def _no_runnable_cell_error(rejected: Sequence[RejectedCell]) -> MatrixInvalid:
    phones_by_reason: dict[str, dict[str, None]] = {}
    for cell in rejected:
        named = phones_by_reason.setdefault(cell.reason, {})
        if cell.device_id is not None:
            named[cell.device_id] = None
    reasons = "; ".join(
        f"{reason}{_on_devices_text(tuple(phones))}" for reason, phones in phones_by_reason.items()
    )
    hint = next((cell.hint for cell in rejected if cell.hint), "")
    return matrix_invalid([SpecProblem(message=f"none of its cells can run: {reasons}", hint=hint)])


def _on_devices_text(phones: Sequence[str]) -> str:
    if not phones:
        return ""
    more = f" and {len(phones) - _DEVICES_SHOWN} more" if len(phones) > _DEVICES_SHOWN else ""
    return f" ({', '.join(phones[:_DEVICES_SHOWN])}{more})"
