"""From a matrix and what the farm has to cells, with a reason for every cell that cannot be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from farm.core.baseline import Baseline, resolved_baseline
from farm.core.device_fit import unfit_on
from farm.core.errors import MatrixInvalid
from farm.core.grid import check_size, checked_words, grid
from farm.core.ids import DeviceId
from farm.core.matrix import (
    BACKEND_AXIS,
    Cell,
    Expansion,
    Key,
    KnownHarness,
    KnownVariant,
    MatrixPlan,
    RejectedCell,
    Rejection,
    has_all,
)
from farm.core.problem import MatrixProblem, matrix_invalid
from farm.core.selector import KnownDevice, selected_devices
from farm.core.variant import Format, Precision, Recipe, command_for, variant_name
from farm.core.vocabulary import vocabulary

#: Without a file where the harness runs no model.
_Runnable = tuple[Key, KnownVariant | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """A cell before it is put on a device; `baseline` is the position of its baseline's slot."""

    key: Key
    variant: KnownVariant | None
    replica: int
    baseline: int | None
    is_baseline: bool


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
    words = checked_words(plan, vocabulary(harness, variants))
    chosen = selected_devices(plan.selectors, devices)
    check_size(plan, words, devices=len(chosen))
    keys, excluded = grid(words, harness)
    runnable, impossible = _split_impossible(keys, variants, harness)
    runnable_keys = [key for key, _ in runnable]
    baseline = resolved_baseline(words, harness, runnable_keys, [*excluded, *impossible])
    slots = _slots(runnable, baseline, aa=plan.aa)
    cells, unfit = _on_devices(slots, chosen, harness, words.settings)
    rejected = (*excluded, *impossible, *unfit)
    if not cells:
        raise _nothing_runs(rejected)
    anchor = baseline.anchor if baseline else None
    return Expansion(cells=tuple(cells), rejected=rejected, anchor=anchor)


def _split_impossible(
    keys: Sequence[Key], variants: Sequence[KnownVariant], harness: KnownHarness
) -> tuple[list[_Runnable], list[RejectedCell]]:
    variant_by_key = _newest(variants)
    runnable: list[_Runnable] = []
    impossible: list[RejectedCell] = []
    for key in keys:
        fate = _fate(key, variant_by_key, harness)
        if isinstance(fate, RejectedCell):
            impossible.append(fate)
        else:
            runnable.append((key, fate))
    return runnable, impossible


_VariantKey = tuple[str, Recipe]


def _newest(variants: Sequence[KnownVariant]) -> dict[_VariantKey, KnownVariant]:
    by_age = sorted(variants, key=lambda variant: variant.variant_id)
    return {(variant.manifest.model, variant.manifest.recipe): variant for variant in by_age}


def _variant_key(key: Key) -> _VariantKey:
    optional = {axis: str(key[axis]) for axis in ("memory_format", "target") if axis in key}
    recipe = Recipe(precision=Precision(str(key["precision"])), format=Format(str(key["format"])), **optional)
    return str(key["model"]), recipe


def _fate(
    key: Key, variant_by_key: Mapping[_VariantKey, KnownVariant], harness: KnownHarness
) -> KnownVariant | RejectedCell | None:
    """The file that a cell runs, or why it cannot; None where none is needed."""
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


def _unsupported(key: Key, reason: str) -> RejectedCell:
    return RejectedCell(key=key, rejection=Rejection.UNSUPPORTED, reason=reason)


def _no_variant(key: Key) -> RejectedCell:
    model, recipe = _variant_key(key)
    return RejectedCell(
        key=key,
        rejection=Rejection.NO_VARIANT,
        reason=f"no such file of {model} is registered",
        hint=f"`{command_for(model, recipe)}`",
    )


def _expired_variant(key: Key) -> RejectedCell:
    model, recipe = _variant_key(key)
    return RejectedCell(
        key=key,
        rejection=Rejection.EXPIRED,
        reason=f"the file of {variant_name(model, recipe)} expired",
        hint=f"`{command_for(model, recipe)}` sends it again, `farm variants add` what was made elsewhere",
    )


def _slots(runnable: Sequence[_Runnable], baseline: Baseline | None, *, aa: bool) -> list[_Slot]:
    """Cells in the order of the matrix, each twin right behind its baseline."""
    entries: list[tuple[Key, KnownVariant | None, int]] = []
    for key, variant in runnable:
        entries.append((key, variant, 1))
        if aa and baseline is not None and has_all(key, baseline.values):
            entries.append((key, variant, 2))
    position = {tuple(key.values()): n for n, (key, _, replica) in enumerate(entries) if replica == 1}
    own = [
        None if baseline is None else position.get(tuple(baseline.of(key).values())) for key, _, _ in entries
    ]
    return [
        _Slot(
            key=key,
            variant=variant,
            replica=replica,
            baseline=None if own[number] == number else own[number],
            is_baseline=own[number] == number,
        )
        for number, (key, variant, replica) in enumerate(entries)
    ]


def _on_devices(
    slots: Sequence[_Slot], devices: Sequence[KnownDevice], harness: KnownHarness, settings: Key
) -> tuple[list[Cell], list[RejectedCell]]:
    cells: list[Cell] = []
    rejected: list[RejectedCell] = []
    complete = [_complete(slot.key, {**harness.defaults, **settings}) for slot in slots]
    for device in devices:
        unfit = [unfit_on(device, harness, slot.key, own) for slot, own in zip(slots, complete, strict=True)]
        cells += _cells(slots, complete, unfit, device.device_id, first=len(cells))
        rejected += [
            cell for slot, cell in zip(slots, unfit, strict=True) if cell is not None and slot.replica == 1
        ]
    return cells, rejected


def _complete(key: Key, settings: Key) -> Key:
    return {flag: key.get(flag, value) for flag, value in settings.items()}


def _cells(
    slots: Sequence[_Slot],
    settings: Sequence[Key],
    unfit: Sequence[RejectedCell | None],
    device_id: DeviceId,
    *,
    first: int,
) -> Iterator[Cell]:
    """One device's cells; one whose baseline cannot run there has none."""
    fit = [number for number, rejection in enumerate(unfit) if rejection is None]
    index_by_slot = {number: first + place for place, number in enumerate(fit)}
    for number in fit:
        slot = slots[number]
        yield Cell(
            index=index_by_slot[number],
            device_id=device_id,
            variant_id=None if slot.variant is None else slot.variant.variant_id,
            backend=str(slot.key[BACKEND_AXIS]),
            settings=settings[number],
            replica=slot.replica,
            key=slot.key,
            baseline_index=None if slot.baseline is None else index_by_slot.get(slot.baseline),
            is_baseline=slot.is_baseline,
        )


def _nothing_runs(rejected: Sequence[RejectedCell]) -> MatrixInvalid:
    reasons = "; ".join(dict.fromkeys(cell.reason for cell in rejected))
    hint = next((cell.hint for cell in rejected if cell.hint), "")
    return matrix_invalid([MatrixProblem(message=f"none of its cells can run: {reasons}", hint=hint)])
