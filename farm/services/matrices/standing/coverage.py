"""The cells that a standing matrix is to have, at the present versions of what they are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, VariantId
from farm.core.base.spec_errors import SpecProblem
from farm.core.matrices.matrix import Cell
from farm.core.matrices.standing import CellVersions, Skip, missing_reason, skip_of, version_digest
from farm.core.models.variant import variant_name
from farm.services.matrices.cell_series import series_by_cell
from farm.services.matrices.submit import MatrixExpansion
from farm.store.matrices.coverage import CellWork, builds_of_cells, last_queued


@dataclass(frozen=True, slots=True)
class WantedCell:
    """A cell that a standing matrix is to have."""

    cell: Cell
    versions: CellVersions
    version_digest: Digest
    #: None where it is measured.
    skip: Skip | None


def wanted_cells(expanded: MatrixExpansion, skips: Sequence[Skip], *, today: date) -> list[WantedCell]:
    """Return all cells of an expanded standing matrix, skipped ones too, in their order."""
    device_by_id = {device.device_id: device for device in expanded.devices}
    manifest_by_variant = {variant.variant_id: variant.manifest for variant in expanded.variants}
    digest_by_program = {
        program.program_id: program.digest
        for programs in expanded.inputs.programs.values()
        for program in programs.values()
    }
    programs_by_device, series = expanded.programs_by_device(), series_by_cell(expanded)
    wanted = []
    for cell in expanded.expansion.cells:
        manifest = None if cell.variant_id is None else manifest_by_variant[cell.variant_id]
        versions = CellVersions(
            variant=None if manifest is None else manifest.digest,
            program=digest_by_program[programs_by_device[cell.device_id][cell.harness]],
            build=device_by_id[cell.device_id].facts.build_fingerprint,
        )
        digest = version_digest(series=series[cell.index], replica=cell.replica, versions=versions)
        skip = skip_of(skips, cell.key, device_by_id[cell.device_id], today=today)
        wanted.append(WantedCell(cell, versions, digest, skip))
    return wanted


def missing_reasons(
    connection: Connection, standing_id: int, expanded: MatrixExpansion, missing: Sequence[WantedCell]
) -> dict[Digest, str]:
    """Return by version digest why cells of a standing matrix are missing, as text."""
    name_by_variant = {
        variant.variant_id: variant_name(variant.manifest.model, variant.manifest.recipe)
        for variant in expanded.variants
    }
    before = last_queued(connection, standing_id, {own.cell.device_id for own in missing})
    known_devices = {work.device_id for work in before}
    queued = {own.version_digest: before.get(_work(own.cell, name_by_variant)) for own in missing}
    builds = builds_of_cells(connection, {last.cell_id for last in queued.values() if last is not None})
    reasons = {}
    for own in missing:
        if (last := queued[own.version_digest]) is not None:
            build = builds.get(last.cell_id)
            versions = CellVersions(variant=last.variant, program=last.program, build=build)
            reasons[own.version_digest] = missing_reason(own.versions, versions)
        elif own.cell.device_id in known_devices:
            reasons[own.version_digest] = "new in the matrix, or without a file before"
        else:
            reasons[own.version_digest] = "new device"
    return reasons


def _work(cell: Cell, name_by_variant: Mapping[VariantId, str]) -> CellWork:
    return CellWork(
        device_id=cell.device_id,
        harness=cell.harness,
        variant=None if cell.variant_id is None else name_by_variant[cell.variant_id],
        backend=cell.backend,
        settings=frozenset(cell.settings.items()),
        replica=cell.replica,
    )


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
