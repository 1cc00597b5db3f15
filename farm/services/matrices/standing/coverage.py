"""The cells that a standing matrix is to have, at the present versions of what they are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from farm.core.base.ids import Digest
from farm.core.base.spec_errors import SpecProblem
from farm.core.matrices.matrix import Cell
from farm.core.matrices.standing import Skip, skip_of, version_digest
from farm.services.matrices.cell_series import series_by_cell
from farm.services.matrices.submit import MatrixExpansion


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


def skip_problems(
    expanded: MatrixExpansion, skips: Sequence[Skip], known: Sequence[Skip], *, today: date
) -> list[SpecProblem]:
    """Return what is wrong with skips: one that ended already, or that covers no cell.

    Args:
        expanded: the matrix over the current devices.
        skips: as they are written.
        known: those that were stored before, and may have ended.
        today: in UTC.
    """
    device_by_id = {device.device_id: device for device in expanded.devices}
    problems = []
    for place, skip in enumerate(skips):
        if skip in known:
            continue
        if skip.until < today:
            message, hint = f"{skip.until} has passed", "give the last day of the skip, or leave the skip out"
            problems.append(SpecProblem(path=("skip", place, "until"), message=message, hint=hint))
        elif not any(
            skip.covers(cell.key, device_by_id[cell.device_id], today=today)
            for cell in expanded.expansion.cells
        ):
            message = "it covers no cell of this matrix on the devices that the farm has"
            hint = "`cells` are values of its axes, `devices` are selectors of its devices"
            problems.append(SpecProblem(path=("skip", place), message=message, hint=hint))
    return problems
