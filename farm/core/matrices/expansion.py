"""Expansion of a matrix into cells, with a reason for every rejected cell."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from farm.core.base.ids import VariantId
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.base.spec_errors import SpecProblem, matrix_invalid
from farm.core.devices.controls import Controls
from farm.core.devices.selector import KnownDevice, select_devices
from farm.core.errors import MatrixInvalid
from farm.core.matrices.allowed_values import allowed_values
from farm.core.matrices.axes import (
    AxisDefaults,
    Baseline,
    check_size,
    expand_axes,
    resolve_baseline,
    type_axes,
)
from farm.core.matrices.matrix import (
    CellAssignment,
    CellKey,
    Expansion,
    KnownHarness,
    KnownHarnesses,
    KnownVariant,
    MatrixSpec,
    RejectedCell,
    RejectionKind,
    Slot,
    has_all,
)
from farm.core.models.builders import build_command
from farm.core.models.declared_inputs import (
    InputProblem,
    InputsContradict,
    declared_input,
    with_declared,
)
from farm.core.models.variant import (
    BACKEND_AXIS,
    HARNESS_AXIS,
    VARIANT_AXES,
    Format,
    Manifest,
    Recipe,
    TensorSpec,
    meant_precision,
    variant_name,
)
from farm.core.programs.abi import ANY_ABI, select_abi

#: The largest number of devices that an error message names.
_DEVICES_SHOWN = 10
#: The largest number of reasons that an error message gives for cells that cannot run.
_REASONS_SHOWN = 5
#: Without a file where the harness runs no model; with the flags that tell the tool its inputs.
_Runnable = tuple[CellKey, KnownVariant | None, CellKey]


def expand(
    spec: MatrixSpec,
    *,
    variants: Sequence[KnownVariant],
    harnesses: Sequence[KnownHarness],
    devices: Sequence[KnownDevice],
) -> Expansion:
    """Expand a matrix into slots, the devices that run them, and rejected cells.

    The same arguments in the same order give the same cells. There is one variant of a model and recipe: the
    current one of that name.

    Raises:
        MatrixInvalid: a name or value the farm does not know, a value of the wrong type, a rule or baseline
            that fits no cell, a cell that is there twice, too many cells, or none that can run.
        SelectorEmpty: a selector fits no device.
    """
    known = KnownHarnesses(harnesses)
    words = type_axes(spec, allowed_values(known, variants))
    defaults = AxisDefaults(words, known)
    chosen = select_devices(spec.devices, devices)
    check_size(spec, words, devices=len(chosen))
    keys, excluded = expand_axes(words, known, defaults)
    declared = _DeclaredInputs(tuple(map(declared_input, spec.inputs)), known, words.settings)
    runnable, impossible = _split_impossible(keys, variants, known, defaults, declared)
    runnable_keys = [key for key, _, _ in runnable]
    baseline = resolve_baseline(words, known, defaults, runnable_keys, [*excluded, *impossible])
    slots = _slots(runnable, baseline, known, words.settings, aa=spec.aa)
    assignments, unfit = _assign_slots(slots, chosen, known, spec.controls)
    rejected = (*excluded, *impossible, *unfit)
    if not assignments:
        raise _no_runnable_cell_error(rejected, chosen)
    if _is_baseline_alone(slots, baseline, impossible):
        raise _nothing_to_compare_error(impossible)
    anchor = baseline.anchor if baseline else None
    return Expansion(slots=tuple(slots), assignments=tuple(assignments), rejected=rejected, anchor=anchor)


def _split_impossible(
    keys: Sequence[CellKey],
    variants: Sequence[KnownVariant],
    harnesses: KnownHarnesses,
    defaults: AxisDefaults,
    declared: "_DeclaredInputs",
) -> tuple[list[_Runnable], list[RejectedCell]]:
    variant_by_key = {(variant.manifest.model, variant.manifest.recipe): variant for variant in variants}
    runnable: list[_Runnable] = []
    impossible: list[RejectedCell] = []
    for key in keys:
        fate = _unknown_flag(key, harnesses, defaults) or _resolve_variant(
            key, variant_by_key, harnesses.of(key)
        )
        filled = declared.settings(key, fate) if isinstance(fate, KnownVariant) else {}
        if isinstance(fate, RejectedCell):
            impossible.append(fate)
        elif isinstance(filled, InputProblem):
            unsupported = RejectionKind.UNSUPPORTED
            impossible.append(
                RejectedCell(key=key, rejection=unsupported, reason=filled.reason, hint=filled.hint)
            )
        else:
            runnable.append((key, fate, filled))
    return runnable, impossible


def _unknown_flag(key: CellKey, harnesses: KnownHarnesses, defaults: AxisDefaults) -> RejectedCell | None:
    """Return the rejected cell where it changes a flag that its harness does not have."""
    if len(harnesses.all) == 1 or (flag := defaults.unknown_flag(key)) is None:
        return None
    return RejectedCell(
        key=key,
        rejection=RejectionKind.UNSUPPORTED,
        reason=f"{harnesses.of(key).name} has no flag `{flag}`",
        hint=f"leave `{flag}` out of `axes`, and `include` cells of a harness that has it",
    )


class _DeclaredInputs:
    """The flags that tell a tool its inputs: those of each file, completed by what the matrix declares."""

    def __init__(self, declared: Sequence[TensorSpec], harnesses: KnownHarnesses, settings: CellKey) -> None:
        self._declared = declared
        self._harnesses = harnesses
        self._settings = settings
        self._told_by_id: dict[VariantId, Manifest | InputProblem] = {}

    def settings(self, key: CellKey, variant: KnownVariant) -> CellKey | InputProblem:
        """Return the flags that no person states, or why the file cannot run with the inputs."""
        told = self._told_by_id.get(variant.variant_id)
        if told is None:
            told = self._told_by_id[variant.variant_id] = self._told(variant.manifest)
        if isinstance(told, InputProblem):
            return told
        given = {**self._settings, **key}
        harness = self._harnesses.of(key)
        filled = harness.input_settings(told, given)
        if filled is None and self._declared and told.inputs != variant.manifest.inputs:
            return InputProblem(
                reason=f"{harness.name} takes its inputs from the file and cannot be told others",
                hint="leave `inputs` out",
            )
        return filled or {}

    def _told(self, manifest: Manifest) -> Manifest | InputProblem:
        if not self._declared:
            return manifest
        try:
            inputs = with_declared(manifest, self._declared)
        except InputsContradict as error:
            name = variant_name(manifest.model, manifest.recipe)
            return InputProblem(reason=f"{name}: {error}", hint="change `inputs`, or leave it out")
        # A bundled input may have another shape.
        return replace(manifest, inputs=inputs, bundled_inputs=False)


_VariantKey = tuple[str, Recipe]


def _variant_key(key: CellKey) -> _VariantKey:
    optional = {axis: str(key[axis]) for axis in ("memory_format", "target") if axis in key}
    recipe = Recipe(precision=str(key["precision"]), format=Format(str(key["format"])), **optional)
    return str(key["model"]), recipe


def _resolve_variant(
    key: CellKey, variant_by_key: Mapping[_VariantKey, KnownVariant], harness: KnownHarness
) -> KnownVariant | RejectedCell | None:
    """Return a cell's variant, or the rejected cell if it cannot run; None if the harness needs no model."""
    backend = str(key[BACKEND_AXIS])
    unsupported = partial(RejectedCell, key=key, rejection=RejectionKind.UNSUPPORTED)
    if backend not in harness.backends:
        has = f"it has {', '.join(harness.backends)}"
        return unsupported(reason=f"{harness.name} has no backend {backend}: {has}")
    if not harness.needs_model:
        reason = harness.unsupported(None, backend)
        return None if reason is None else unsupported(reason=reason)
    model, recipe = _variant_key(key)
    variant = variant_by_key.get((model, recipe))
    if variant is None:
        meant = meant_precision(recipe.precision)
        return RejectedCell(
            key=key,
            rejection=RejectionKind.NO_VARIANT,
            reason=f"{variant_name(model, recipe)} is not registered",
            hint=f"{f'did you mean `{meant}`? Else ' if meant else ''}`{build_command(model, recipe)}`",
        )
    reason = harness.unsupported(variant.manifest, backend)
    if reason is None and backend not in variant.manifest.backends:
        reason = f"the file is made for {', '.join(variant.manifest.backends)}, not for {backend}"
    if reason is not None:
        return unsupported(reason=reason)
    if not variant.expired:
        return variant
    return RejectedCell(
        key=key,
        rejection=RejectionKind.EXPIRED,
        reason=f"the file of {variant_name(model, recipe)} expired",
        hint=f"`{build_command(model, recipe)}` rebuilds and uploads it;"
        " for a file made elsewhere, use `farm variant add`",
    )


def _slots(
    runnable: Sequence[_Runnable],
    baseline: Baseline | None,
    harnesses: KnownHarnesses,
    settings: CellKey,
    *,
    aa: bool,
) -> list[Slot]:
    """Return cells in matrix order, each A/A duplicate directly after its baseline."""
    entries: list[tuple[_Runnable, int]] = []
    for cell in runnable:
        entries.append((cell, 1))
        if aa and baseline is not None and has_all(cell[0], baseline.values):
            entries.append((cell, 2))
    number_by_key = {tuple(cell[0].values()): n for n, (cell, replica) in enumerate(entries) if replica == 1}
    baseline_numbers = [
        None if baseline is None else number_by_key.get(tuple(baseline.of(key).values()))
        for (key, _, _), _ in entries
    ]
    return [
        Slot(
            key=_own_axes(key, harnesses.of(key)),
            harness=harnesses.of(key).name,
            variant_id=None if variant is None else variant.variant_id,
            abi=None if variant is None else variant.manifest.abi,
            backend=str(key[BACKEND_AXIS]),
            settings=_complete_settings({**settings, **filled, **key}, harnesses.of(key)),
            replica=replica,
            baseline=None if baseline_numbers[number] == number else baseline_numbers[number],
            is_baseline=baseline_numbers[number] == number,
        )
        for number, ((key, variant, filled), replica) in enumerate(entries)
    ]


def _own_axes(key: CellKey, harness: KnownHarness) -> CellKey:
    """Return a cell's key without the flags that its harness does not have."""
    unknown = key.keys() - {HARNESS_AXIS, BACKEND_AXIS, *VARIANT_AXES} - harness.defaults.keys()
    return {axis: value for axis, value in key.items() if axis not in unknown} if unknown else key


def _complete_settings(given: CellKey, harness: KnownHarness) -> CellKey:
    """Return all flags of a harness, those that are given in the types of the flags."""
    return {flag: _typed(given.get(flag, value), value) for flag, value in harness.defaults.items()}


def _typed(value: SettingValue, default: SettingValue) -> SettingValue:
    # Of a flag that two harnesses have, one may take whole numbers and the other any.
    return float(value) if isinstance(default, float) else value


def _assign_slots(
    slots: Sequence[Slot], devices: Sequence[KnownDevice], harnesses: KnownHarnesses, controls: Controls
) -> tuple[list[CellAssignment], list[RejectedCell]]:
    assignments: list[CellAssignment] = []
    rejected: list[RejectedCell] = []
    # Compatibility of a phone and a cell depends on ABIs and root alone: checked once for phones of a kind.
    unfit_by_kind: dict[tuple[object, ...], dict[int, RejectedCell]] = {}
    first = 0
    for device in devices:
        kind = (*device.facts.abis, device.facts.root)
        if kind not in unfit_by_kind:
            unfit_by_kind[kind] = _incompatible_slots(slots, device, harnesses, controls)
        unfit = unfit_by_kind[kind]
        numbers = [number for number in range(len(slots)) if number not in unfit] if unfit else None
        fit = range(len(slots)) if numbers is None else tuple(numbers)
        if fit:
            assignments.append(CellAssignment(device_id=device.device_id, first=first, slots=fit))
            first += len(fit)
        rejected += [
            replace(cell, device_id=device.device_id)
            for number, cell in unfit.items()
            if slots[number].replica == 1
        ]
    return assignments, rejected


def _incompatible_slots(
    slots: Sequence[Slot], device: KnownDevice, harnesses: KnownHarnesses, controls: Controls
) -> dict[int, RejectedCell]:
    """Return, by number, the slots that a device cannot run."""
    rejections = (
        (
            number,
            find_incompatibility(device, harnesses.named(slot.harness), slot, controls),
        )
        for number, slot in enumerate(slots)
    )
    return {number: rejection for number, rejection in rejections if rejection is not None}


def _is_baseline_alone(
    slots: Sequence[Slot], baseline: Baseline | None, impossible: Sequence[RejectedCell]
) -> bool:
    """Return whether every file that a baseline was to be compared with is missing."""
    is_compared = any(slot.baseline is not None and slot.replica == 1 for slot in slots)
    return baseline is not None and not is_compared and any(cell.rejection.wants_file for cell in impossible)


def _nothing_to_compare_error(impossible: Sequence[RejectedCell]) -> MatrixInvalid:
    missing = [cell for cell in impossible if cell.rejection.wants_file]
    reasons = list(dict.fromkeys(cell.reason for cell in missing))
    more = f"; and {len(reasons) - _REASONS_SHOWN} more" if len(reasons) > _REASONS_SHOWN else ""
    message = f"nothing is left to compare with the baseline: {'; '.join(reasons[:_REASONS_SHOWN])}{more}"
    return matrix_invalid([SpecProblem(message=message, hint=missing[0].hint)])


def _no_runnable_cell_error(
    rejected: Sequence[RejectedCell], devices: Sequence[KnownDevice]
) -> MatrixInvalid:
    name_by_id = {device.device_id: device.label or device.device_id for device in devices}
    names_by_reason: dict[str, dict[str, None]] = {}
    for cell in rejected:
        names = names_by_reason.setdefault(cell.reason, {})
        if cell.device_id is not None:
            names[name_by_id[cell.device_id]] = None
    reasons = [f"{reason}{_on_devices_text(tuple(names))}" for reason, names in names_by_reason.items()]
    if len(reasons) > _REASONS_SHOWN:
        reasons[_REASONS_SHOWN:] = [f"and {len(reasons) - _REASONS_SHOWN} more reasons"]
    hint = next((cell.hint for cell in rejected if cell.hint), "")
    return matrix_invalid(
        [SpecProblem(message=f"none of its cells can run: {'; '.join(reasons)}", hint=hint)]
    )


def _on_devices_text(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _DEVICES_SHOWN} more" if len(names) > _DEVICES_SHOWN else ""
    return f" ({', '.join(names[:_DEVICES_SHOWN])}{more})"


def find_incompatibility(
    device: KnownDevice, harness: KnownHarness, slot: Slot, controls: Controls
) -> RejectedCell | None:
    """Return why a device cannot run a cell; None when it can."""
    # `root` is None when the phone does not report it; the agent then finds out during the run.
    unfit = partial(RejectedCell, key=slot.key, device_id=device.device_id)
    if controls.needs_root and device.facts.root is False:
        return unfit(
            rejection=RejectionKind.UNSUPPORTED,
            reason=f"the phone has no root, without which nothing sets {', '.join(controls.root_controls)}",
            hint="leave that out of `controls:`, or choose phones that have it: `devices: {root: true}`",
        )
    abi = select_abi(device.facts.abis, harness.abis)
    add = f"`farm harness add {harness.name} PATH`"
    if abi is None:
        return unfit(
            rejection=RejectionKind.NO_PROGRAM,
            reason=f"no program of {harness.name} is registered for {device.facts.abi or 'an unknown ABI'}",
            hint=f"registered for {', '.join(harness.abis) or 'no ABI at all'}; {add} registers one",
        )
    loads = device.facts.abi if abi == ANY_ABI else abi
    if slot.abi not in (None, loads):
        return unfit(
            rejection=RejectionKind.UNSUPPORTED,
            reason=f"the file is compiled for {slot.abi}, and {harness.name} runs as {loads} there",
            hint="`target` of the matrix names the ABI: `farm variant build --target` makes a file for each",
        )
    if abi in harness.expired:
        return unfit(
            rejection=RejectionKind.EXPIRED,
            reason=f"a file of the {abi} program of {harness.name} expired",
            hint=f"send its files again: {add}",
        )
    set_flags = non_default_settings(slot.settings, harness.defaults)
    changed = [flag for flag in set_flags if flag in harness.missing_flags.get(abi, ())]
    if not changed:
        return None
    flags = ", ".join(f"--{flag}" for flag in changed)
    return unfit(
        rejection=RejectionKind.UNSUPPORTED,
        reason=f"the {abi} program of {harness.name} has no flag {flags}",
        hint=f"leave {flags} at its default there, or register a program that has it: {add}",
    )
