"""What cells run, as fields: model file, program and flags."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.core.base.ids import VariantId
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.models.variant import Variant
from farm.services.files.harnesses import default_of_flags
from farm.store.files.programs import Program, programs_by_id
from farm.store.files.variants import variants_by_id
from farm.store.matrices.matrices import CellRow, Matrix
from farm.wire.documents.matrices.cell_setup import CellSetup

#: The fields of a cell without a model file.
_NO_FILE = dict.fromkeys(("precision", "format", "memory_format", "target", "variant_digest"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSetups:
    """The model files, programs and defaults of cells of one harness."""

    harness: str
    variants: Mapping[VariantId, Variant]
    programs: Mapping[int, Program]
    defaults: Mapping[str, SettingValue]

    def setup(self, cell: CellRow) -> CellSetup:
        """Return what one of these cells runs."""
        variant = None if cell.variant_id is None else self.variants[cell.variant_id]
        records = () if variant is None else (variant.manifest.recipe,)
        file = _NO_FILE if variant is None else {"variant_digest": variant.manifest.digest}
        return CellSetup.of(
            cell,
            *records,
            **file,
            variant=cell.variant_name,
            changed_settings=non_default_settings(cell.settings, self.defaults),
            harness=self.harness,
            program_digest=self.programs[cell.program_id].digest,
        )


def cell_setups(connection: Connection, matrix: Matrix, cells: Sequence[CellRow]) -> CellSetups:
    """Read what cells of a matrix run."""
    return setups_by_harness(connection, {matrix.harness}, cells)[matrix.harness]


def setups_by_harness(
    connection: Connection, harnesses: Collection[str], cells: Sequence[CellRow]
) -> dict[str, CellSetups]:
    """Read what cells of these harnesses run: two statements, and one for a harness without an adapter."""
    variant_ids = {cell.variant_id for cell in cells if cell.variant_id is not None}
    variants = variants_by_id(connection, variant_ids)
    programs = programs_by_id(connection, {cell.program_id for cell in cells})
    return {
        harness: CellSetups(
            harness=harness,
            variants=variants,
            programs=programs,
            defaults=default_of_flags(connection, harness),
        )
        for harness in harnesses
    }
