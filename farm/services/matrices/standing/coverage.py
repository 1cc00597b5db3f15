"""The cells that a standing matrix is to have, at the present versions of what they are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from farm.core.base.ids import Digest
from farm.core.matrices.matrix import Cell
from farm.core.matrices.standing import Skip, skip_of, version_digest
from farm.services.matrices.cell_series import series_by_cell
from farm.services.matrices.current_expansion import MatrixExpansion


@dataclass(frozen=True, slots=True)
class WantedCell:
    """A cell that a standing matrix is to have."""

    cell: Cell
    version_digest: Digest
    #: None where it is measured.
    skip: Skip | None


def wanted_cells(expanded: MatrixExpansion, skips: Sequence[Skip], *, today: date) -> list[WantedCell]:
    """Return all cells of an expanded standing matrix, skipped ones too, in their order."""
    device_by_id = {device.device_id: device for device in expanded.devices}
    digest_by_variant = {variant.variant_id: variant.manifest.digest for variant in expanded.variants}
    digest_by_program = {
        program.program_id: program.digest
        for programs in expanded.inputs.programs.values()
        for program in programs.values()
    }
    programs_by_device, series = expanded.programs_by_device(), series_by_cell(expanded)
    return [
        WantedCell(
            cell,
            version_digest(
                series=series[cell.index],
                replica=cell.replica,
                variant=None if cell.variant_id is None else digest_by_variant[cell.variant_id],
                program=digest_by_program[programs_by_device[cell.device_id][cell.harness]],
                build=device_by_id[cell.device_id].facts.build_fingerprint,
            ),
            skip_of(skips, cell.key, device_by_id[cell.device_id], today=today),
        )
        for cell in expanded.expansion.cells
    ]
