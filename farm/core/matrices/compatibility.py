"""Compatibility of cells with devices."""

from farm.core.base.setting_values import non_default_settings
from farm.core.devices.controls import Controls
from farm.core.devices.selector import KnownDevice
from farm.core.matrices.matrix import CellKey, KnownHarness, RejectedCell, RejectionKind
from farm.core.programs.selection import select_abi


def find_incompatibility(
    device: KnownDevice, harness: KnownHarness, key: CellKey, settings: CellKey, controls: Controls
) -> RejectedCell | None:
    """Return why a device cannot run a cell; None when it can.

    Args:
        device: the phone.
        harness: with its programs, one of which the phone runs.
        key: the cell's axes.
        settings: all of its flags, defaults filled in.
        controls: what is to be set on the phone.
    """
    if controls.needs_root and device.facts.root is False:
        # Of a phone that does not say whether it has root, its agent finds out.
        return _needs_root(device, key, controls)
    abi = select_abi(device.facts.abis, harness.abis)
    if abi is None:
        return RejectedCell(
            key=key,
            device_id=device.device_id,
            rejection=RejectionKind.NO_PROGRAM,
            reason=f"no program of {harness.name} is registered for {device.facts.abi or 'an unknown ABI'}",
            hint=f"registered for {', '.join(harness.abis) or 'no ABI at all'};"
            f" `farm harness add {harness.name} PATH` registers one",
        )
    if abi in harness.expired:
        return RejectedCell(
            key=key,
            device_id=device.device_id,
            rejection=RejectionKind.EXPIRED,
            reason=f"a file of the {abi} program of {harness.name} expired",
            hint=f"send its files again: `farm harness add {harness.name}`",
        )
    missing_flags = harness.missing_flags.get(abi, frozenset())
    changed = [flag for flag in non_default_settings(settings, harness.defaults) if flag in missing_flags]
    return _missing_flags(device, harness, key, abi, changed) if changed else None


def _needs_root(device: KnownDevice, key: CellKey, controls: Controls) -> RejectedCell:
    return RejectedCell(
        key=key,
        device_id=device.device_id,
        rejection=RejectionKind.UNSUPPORTED,
        reason=f"the phone has no root, without which nothing sets {', '.join(controls.root_controls)}",
        hint="leave that out of `controls:`, or choose phones that have it: `devices: {root: true}`",
    )


def _missing_flags(
    device: KnownDevice, harness: KnownHarness, key: CellKey, abi: str, changed: list[str]
) -> RejectedCell:
    flags = ", ".join(f"--{flag}" for flag in changed)
    return RejectedCell(
        key=key,
        device_id=device.device_id,
        rejection=RejectionKind.UNSUPPORTED,
        reason=f"the {abi} program of {harness.name} has no flag {flags}",
        hint=f"leave {flags} at its default there, or register a program that has it: `farm harness add`",
    )
