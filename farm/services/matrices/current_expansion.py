"""Expansion of a matrix over the present devices, variants and programs; nothing is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.devices.selector import KnownDevice
from farm.core.matrices.expansion import expand
from farm.core.matrices.matrix import Expansion, KnownHarness, KnownVariant, MatrixSpec, varying_axes
from farm.core.programs.abi import select_abi
from farm.services.files.harnesses import expired_abis, known_harness
from farm.store.devices.facts import known_devices
from farm.store.files import variants as variant_store
from farm.store.files.artifacts import expired_at_by_digest
from farm.store.files.programs import Program, current_programs


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionInputs:
    """The devices, variants and programs that a matrix is expanded over; equal ones give the same cells."""

    devices: Sequence[KnownDevice]
    variants: Sequence[KnownVariant]
    #: In use, by ABI.
    programs: Mapping[str, Program]
    #: ABIs whose program has a file that expired.
    expired: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixExpansion:
    """A matrix with everything that its cells refer to."""

    spec: MatrixSpec
    expansion: Expansion
    inputs: ExpansionInputs
    harness: KnownHarness
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

    def program_by_device(self) -> dict[DeviceId, int]:
        """Return the program of each device; devices that can run none are missing."""
        programs = self.inputs.programs
        abis = {device.device_id: select_abi(device.facts.abis, programs) for device in self.devices}
        return {device_id: programs[abi].program_id for device_id, abi in abis.items() if abi is not None}


def expand_matrix(connection: Connection, spec: MatrixSpec) -> MatrixExpansion:
    """Expand a matrix over the present devices, variants and programs.

    Raises:
        MatrixInvalid: a name or value the farm does not know, or cells that cannot be.
        SelectorEmpty: a selector fits no device.
    """
    harness = known_harness(connection, spec.harness, sustained=spec.sustained is not None)
    inputs = expansion_inputs(connection, spec.harness)
    expansion = expand(spec, variants=inputs.variants, harness=harness, devices=inputs.devices)
    keys = [slot.key for slot in expansion.slots] + [cell.key for cell in expansion.rejected]
    return MatrixExpansion(
        spec=spec,
        expansion=expansion,
        inputs=inputs,
        harness=harness,
        varying=varying_axes(keys),
    )


def expansion_inputs(connection: Connection, harness: str) -> ExpansionInputs:
    """Return what matrices of a harness are expanded over now."""
    programs = current_programs(connection, harness)
    return ExpansionInputs(
        devices=known_devices(connection),
        variants=_known_variants(connection),
        programs=programs,
        expired=expired_abis(connection, programs),
    )


def _known_variants(connection: Connection) -> list[KnownVariant]:
    expired = expired_at_by_digest(connection)
    return [
        KnownVariant(
            variant_id=variant.variant_id,
            manifest=variant.manifest,
            expired=variant.manifest.digest in expired,
        )
        for variant in variant_store.list_variants(connection)
    ]
