"""Expansion of a matrix over the present devices, variants and programs; nothing is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.devices.selector import KnownDevice
from farm.core.matrices.expansion import expand
from farm.core.matrices.matrix import Expansion, KnownHarnesses, KnownVariant, MatrixSpec, varying_axes
from farm.core.programs.abi import select_abi
from farm.services.files.harnesses import expired_abis, known_harness
from farm.store.devices.facts import known_devices
from farm.store.files import variants as variant_store
from farm.store.files.programs import Program, current_programs


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionInputs:
    """The devices, variants and programs that a matrix is expanded over; equal ones give the same cells."""

    devices: Sequence[KnownDevice]
    variants: Sequence[KnownVariant]
    #: In use: by harness, and there by ABI.
    programs: Mapping[str, Mapping[str, Program]]
    #: By harness, the ABIs whose program has a file that expired.
    expired: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixExpansion:
    """A matrix with everything that its cells refer to."""

    spec: MatrixSpec
    expansion: Expansion
    inputs: ExpansionInputs
    harnesses: KnownHarnesses
    #: The axes that distinguish cells: of the whole matrix, even where a part of it is run.
    varying: frozenset[str]

    @property
    def devices(self) -> Sequence[KnownDevice]:
        """Return all devices of the farm, whether a selector fits them or not."""
        return self.inputs.devices

    @property
    def variants(self) -> Sequence[KnownVariant]:
        """Return all variants of the farm."""
        return self.inputs.variants

    def programs_by_device(self) -> dict[DeviceId, dict[str, int]]:
        """Return by harness the program that each device runs; a device that can run none has none."""
        return {device.device_id: self._programs_for(device) for device in self.devices}

    def _programs_for(self, device: KnownDevice) -> dict[str, int]:
        found = (
            (harness, programs[abi].program_id)
            for harness, programs in self.inputs.programs.items()
            if (abi := select_abi(device.facts.abis, programs)) is not None
        )
        return dict(found)


def expand_matrix(connection: Connection, spec: MatrixSpec) -> MatrixExpansion:
    """Expand a matrix over the present devices, variants and programs.

    Raises:
        MatrixInvalid: a name or value the farm does not know, or cells that cannot be.
        SelectorEmpty: a selector fits no device.
    """
    harnesses = known_harnesses(connection, spec)
    inputs = expansion_inputs(connection, spec)
    expansion = expand(spec, variants=inputs.variants, harnesses=harnesses.all, devices=inputs.devices)
    keys = [slot.key for slot in expansion.slots] + [cell.key for cell in expansion.rejected]
    return MatrixExpansion(
        spec=spec,
        expansion=expansion,
        inputs=inputs,
        harnesses=harnesses,
        varying=varying_axes(keys),
    )


def known_harnesses(connection: Connection, spec: MatrixSpec) -> KnownHarnesses:
    """Return the harnesses of a matrix.

    Raises:
        MatrixInvalid: there is none of a name.
    """
    is_sustained = spec.sustained is not None
    return KnownHarnesses(
        [known_harness(connection, name, sustained=is_sustained) for name in spec.harnesses]
    )


def expansion_inputs(connection: Connection, spec: MatrixSpec) -> ExpansionInputs:
    """Return what a matrix is expanded over now."""
    programs = {name: current_programs(connection, name) for name in spec.harnesses}
    return ExpansionInputs(
        devices=known_devices(connection),
        variants=_known_variants(connection),
        programs=programs,
        expired={name: expired_abis(connection, own) for name, own in programs.items()},
    )


def _known_variants(connection: Connection) -> list[KnownVariant]:
    return [
        KnownVariant(
            variant_id=variant.variant_id,
            manifest=variant.manifest,
            expired=variant.expired_at is not None,
        )
        for variant in variant_store.list_variants(connection)
    ]
