"""A number measured again as it was made: its cell and its baseline's, by stored files and programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId
from farm.core.devices.device import Admin, DeviceFacts, Presence
from farm.core.devices.software_version import software_changes
from farm.core.errors import ArtifactExpired, Conflict, InvalidInput, NotFound
from farm.core.matrices.blocks import BLOCK_CANDIDATES, start_count_by_cell
from farm.core.matrices.repeated_cells import RepeatedCell
from farm.core.models.builders import build_command
from farm.core.models.variant import Variant
from farm.services.files.harnesses import adapter_of
from farm.services.files.programs import check_program_kept
from farm.services.matrices.rerun import prepare_repeated
from farm.services.matrices.submit import PreparedMatrix
from farm.services.results.cells import list_results
from farm.services.results.speedups.listing import speedup_views
from farm.services.results.speedups.pairs import comparisons_of, with_priors
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.files import programs, variants
from farm.store.files.programs import Program
from farm.store.jobs import attempts, jobs
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.results import provenance
from farm.store.results.provenance import MeasuredRun
from farm.wire.documents.results.rerun import RerunDifference, RerunPlan
from farm.wire.documents.results.speedups import SpeedupView

_MAX_SEED = 2**31
_DIGEST_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    """A number, and what it was made of."""

    attempt_id: AttemptId
    matrix: Matrix
    cell: CellRow
    #: Its baseline and the duplicates of that, then itself; alone where it is compared with none.
    cells: Sequence[CellRow]
    variants: Sequence[Variant]
    program: Program
    device: Device
    #: None where the attempt has no measurement.
    run: MeasuredRun | None


def plan_rerun(connection: Connection, attempt_id: AttemptId) -> RerunPlan:
    """Return how a number is measured again, and what is no longer the same; nothing is stored.

    Raises:
        NotFound: there is no such attempt.
        InvalidInput: it was a health check.
        ArtifactExpired: a file that it needs was deleted.
        Conflict: its device is retired.
    """
    number = _find_number(connection, attempt_id)
    prepared = _prepare(connection, number)
    cell, template = number.cell, prepared.job_template
    baseline = next((other for other in number.cells if other.index == cell.baseline_index), None)
    lowest, highest = prepared.expanded.spec.round_range
    starts = sum(start_count_by_cell(prepared.expanded.expansion.cells, BLOCK_CANDIDATES).values())
    shown = list_results(connection, number.matrix.matrix_id, after=cell.index - 1, limit=1)
    return RerunPlan.of(
        number,
        cell,
        matrix=number.matrix.name,
        device_label=number.device.label,
        harness=cell.harness,
        baseline=None if baseline is None else baseline.label,
        rounds=lowest,
        max_rounds=highest,
        jobs=template.job_count,
        max_jobs=starts * highest,
        speedup=_speedup(connection, number),
        time=shown[0].time if shown else None,
        control_level=number.run and number.run.control_level,
        measured_at=number.run and number.run.measured_at,
        differences=tuple(_differences(connection, number)),
    )


def prepare_number_rerun(connection: Connection, attempt_id: AttemptId) -> PreparedMatrix:
    """Prepare the matrix that measures a number again; nothing is stored. Raises like `plan_rerun`."""
    return _prepare(connection, _find_number(connection, attempt_id))


def _find_number(connection: Connection, attempt_id: AttemptId) -> _Number:
    attempt = attempts.find_attempt(connection, attempt_id)
    if attempt is None:
        raise NotFound(
            f"there is no attempt {attempt_id}", hint="`farm matrix jobs ID` lists a matrix's attempts"
        )
    job = jobs.find_job(connection, attempt.job_id)
    assert job is not None
    if job.cell_id is None:
        raise InvalidInput(
            f"attempt {attempt_id} is a health check: it made no number",
            hint=f"`farm device check {attempt.device_id}` checks the device again",
        )
    cell = matrices.get_cell(connection, job.cell_id)
    rows = matrices.list_cells(connection, cell.matrix_id, device_id=cell.device_id)
    number = _Number(
        attempt_id=attempt_id,
        matrix=matrices.get_matrix(connection, cell.matrix_id),
        cell=cell,
        cells=_compared_with(cell, rows),
        variants=_variants(connection, cell, rows),
        program=programs.get_program(connection, cell.program_id),
        device=devices.get_device(connection, cell.device_id),
        run=_run(connection, cell, attempt_id),
    )
    _check_possible(connection, number)
    return number


def _compared_with(cell: CellRow, rows: Sequence[CellRow]) -> list[CellRow]:
    """Return a cell behind its baseline and the duplicates of that, which join it."""
    baseline = [row for row in rows if row.index == cell.baseline_index]
    duplicates = [
        row
        for row in rows
        if baseline
        and row.replica > 1
        and row.baseline_index == cell.baseline_index
        and row.index != cell.index
    ]
    return [*baseline, *duplicates, cell]


def _variants(connection: Connection, cell: CellRow, rows: Sequence[CellRow]) -> list[Variant]:
    ids = {row.variant_id for row in _compared_with(cell, rows) if row.variant_id is not None}
    return list(variants.variants_by_id(connection, ids).values())


def _run(connection: Connection, cell: CellRow, attempt_id: AttemptId) -> MeasuredRun | None:
    runs = provenance.runs_of_cells(connection, [cell.cell_id])
    return next((run for run in runs if run.attempt_id == attempt_id), None)


def _check_possible(connection: Connection, number: _Number) -> None:
    """Refuse what cannot be measured again at all."""
    if number.device.admin is Admin.RETIRED:
        raise Conflict(
            f"{number.device.name} is retired: nothing runs there any more",
            hint=f"`farm matrix rerun {number.matrix.matrix_id}` measures on the devices that there are",
        )
    for variant in number.variants:
        manifest = variant.manifest
        if variant.expired_at is not None:
            command = build_command(manifest.model, manifest.recipe)
            hint = (
                f"`farm variant add FILE` sends a copy, `{command}` builds one: with the same digest it is "
                "the same file"
            )
            raise ArtifactExpired(
                f"the file of {variant.name} ({manifest.digest[:_DIGEST_SHOWN]})"
                f" was deleted on {variant.expired_at:%Y-%m-%d}",
                hint=hint,
            )
    check_program_kept(connection, number.program)


def _prepare(connection: Connection, number: _Number) -> PreparedMatrix:
    cell = number.cell
    variant_by_id = {variant.variant_id: variant for variant in number.variants}
    cells = [
        RepeatedCell(
            index=row.index,
            baseline_index=row.baseline_index,
            harness=row.harness,
            variant_id=row.variant_id,
            model=row.model,
            recipe=None if row.variant_id is None else variant_by_id[row.variant_id].manifest.recipe,
            backend=row.backend,
            settings=row.settings,
            replica=row.replica,
            program_id=row.program_id,
        )
        for row in number.cells
    ]
    name = f"rerun of attempt {number.attempt_id}: {cell.label}"[:200]
    spec = number.matrix.spec
    prepared = prepare_repeated(connection, spec, cells, name=name, device_id=cell.device_id)
    return replace(prepared, repeated_attempt=number.attempt_id)


def _speedup(connection: Connection, number: _Number) -> SpeedupView | None:
    compared = with_priors(connection, comparisons_of(connection, number.matrix, [number.cell]))
    views = speedup_views(connection, compared)
    return next(iter(views), None)


def _differences(connection: Connection, number: _Number) -> Iterator[RerunDifference]:
    """Yield what is no longer as it was when the number was measured."""
    for variant in sorted(number.variants, key=lambda variant: variant.name):
        if variant.replaced_by is not None:
            digests = variant.manifest.digest[:_DIGEST_SHOWN], variant.replaced_by[:_DIGEST_SHOWN]
            yield _difference(f"file of {variant.name}", *digests, uses_before=True)
    yield from _program_differences(connection, number)
    yield from _device_differences(connection, number)


def _program_differences(connection: Connection, number: _Number) -> Iterator[RerunDifference]:
    program, run = number.program, number.run
    current = programs.current_programs(connection, program.harness).get(program.abi)
    if current is not None and current.digest != program.digest:
        is_definition = current.bundle == program.bundle
        part = f"{'definition' if is_definition else 'program'} of {program.harness} for {program.abi}"
        digests = program.digest[:_DIGEST_SHOWN], current.digest[:_DIGEST_SHOWN]
        yield _difference(part, *digests, uses_before=True)
    version = adapter_of(program).parser_version
    if run is not None and run.parser_version != version:
        yield _difference("parser", f"version {run.parser_version}", f"version {version}")


def _device_differences(connection: Connection, number: _Number) -> Iterator[RerunDifference]:
    device, run = number.device, number.run
    now = device.facts
    facts_id = None if run is None else run.facts_id
    before = None if facts_id is None else provenance.facts_by_id(connection, [facts_id]).get(facts_id)
    if before is not None and now is not None:
        for change in software_changes(before, now):
            yield _difference(change.part, change.before, change.after)
        yield from _hardware_differences(before, now)
    if device.admin is not Admin.ACTIVE:
        yield _difference("device", "active", f"{device.admin}: nothing runs there until it is active")
    if device.presence is Presence.ABSENT:
        yield _difference("device", "present", "absent: it is waited for")


def _hardware_differences(before: DeviceFacts, now: DeviceFacts) -> Iterator[RerunDifference]:
    """Yield what distinguishes a device that took another one's place, or that lost its root."""
    parts = {
        "device model": (before.device_model, now.device_model),
        "SoC": (before.soc, now.soc),
        "root": (before.root, now.root),
    }
    for part, (was, is_now) in parts.items():
        if was is not None and is_now is not None and was != is_now:
            yield _difference(part, _value_text(was), _value_text(is_now))


def _value_text(value: str | bool) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _difference(part: str, before: str, now: str, *, uses_before: bool = False) -> RerunDifference:
    return RerunDifference(part=part, before=before, now=now, uses_before=uses_before)
