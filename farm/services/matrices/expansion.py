"""What a matrix comes to on this farm as it is now; nothing is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.devices.selector import KnownDevice
from farm.core.matrices.expansion import expand
from farm.core.matrices.matrix import Expansion, KnownHarness, KnownVariant, MatrixPlan, varying_axes
from farm.core.programs.selection import select_abi
from farm.services.files.harness_options import expired_abis, known_harness
from farm.store.devices.facts import known_devices
from farm.store.files import variants as variant_store
from farm.store.files.artifacts import expired_at_by_digest
from farm.store.files.programs import Program, current_programs
from farm.wire.documents.matrices.matrix import MatrixSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionInputs:
    """What the farm has that a matrix is expanded over; two that are equal give the same cells."""

    devices: Sequence[KnownDevice]
    variants: Sequence[KnownVariant]
    #: In use, by ABI.
    programs: Mapping[str, Program]
    #: ABIs for whose program a file is gone.
    expired: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixExpansion:
    """A matrix with all that its cells refer to."""

    spec: MatrixSpec
    plan: MatrixPlan
    expansion: Expansion
    inputs: ExpansionInputs
    #: What the cells run.
    harness: KnownHarness
    #: The axes by which cells are told from each other: of the whole matrix, whatever part of it is run.
    varying: frozenset[str]

    @property
    def devices(self) -> Sequence[KnownDevice]:
        """All of the farm, whether a selector fits them or not."""
        return self.inputs.devices

    @property
    def variants(self) -> Sequence[KnownVariant]:
        """All of the farm."""
        return self.inputs.variants

    def program_by_device(self) -> dict[DeviceId, int]:
        """What each device runs; one that can run none is missing."""
        programs = self.inputs.programs
        abis = {device.device_id: select_abi(device.facts.abis, programs) for device in self.devices}
        return {device_id: programs[abi].program_id for device_id, abi in abis.items() if abi is not None}


def expand_matrix(connection: Connection, spec: MatrixSpec) -> MatrixExpansion:
    """Expand a matrix over what the farm has.

    Raises:
        MatrixInvalid: a name or value the farm does not know, or cells that cannot be.
        SelectorEmpty: a selector fits no device.
    """
    plan = spec.plan()
    harness, inputs = known_harness(connection, plan.harness), expansion_inputs(connection, plan.harness)
    expansion = expand(plan, variants=inputs.variants, harness=harness, devices=inputs.devices)
    keys = [slot.key for slot in expansion.slots] + [cell.key for cell in expansion.rejected]
    return MatrixExpansion(
        spec=spec,
        plan=plan,
        expansion=expansion,
        inputs=inputs,
        harness=harness,
        varying=varying_axes(keys),
    )


def expansion_inputs(connection: Connection, harness: str) -> ExpansionInputs:
    """What matrices of a harness are expanded over now."""
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
