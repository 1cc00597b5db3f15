"""What cells ran, on which device, and what is compared of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, JobId
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.devices.condition import ConditionPair, condition_ranges
from farm.core.jobs.run_order import RunOrder
from farm.core.models.variant import Manifest
from farm.core.runs.evidence import Evidence
from farm.services.files.harnesses import adapter_of, default_of_flags
from farm.services.results.speedups.inputs import SpeedupInputs
from farm.services.results.speedups.pairs import comparisons_of, with_priors
from farm.store.devices import devices
from farm.store.files import programs
from farm.store.files import variants as variant_store
from farm.store.files.programs import Program
from farm.store.jobs import counts as job_counts
from farm.store.jobs.counts import Tally
from farm.store.matrices.matrices import CellRow, Matrix
from farm.store.results import provenance
from farm.store.results.provenance import MeasuredRun
from farm.wire.agents.plausibility import read_report
from farm.wire.documents.results.explain import (
    DeviceBuild,
    ExplainedDevice,
    MeasurementView,
    PlacementView,
    ProgramFacts,
    SideView,
)
from farm.wire.storable_text import make_storable

#: By job, its place in its block, from 1, and how many ran there.
PositionByJob = Mapping[JobId, tuple[int, int]]
OrderByAttempt = Mapping[AttemptId, RunOrder]


def explain_sides(
    connection: Connection, sides: Sequence[tuple[CellRow, Sequence[MeasuredRun]]], orders: OrderByAttempt
) -> list[SideView]:
    """Describe cells of one matrix, each with some of its runs, or all."""
    known = programs.programs_by_id(connection, {cell.program_id for cell, _ in sides})
    harnesses = {program.harness for program in known.values()}
    defaults = {harness: default_of_flags(connection, harness) for harness in harnesses}
    variant_ids = {cell.variant_id for cell, _ in sides if cell.variant_id is not None}
    variants = variant_store.variants_by_id(connection, variant_ids)
    tallies = job_counts.tallies_of_cells(connection, [cell.cell_id for cell, _ in sides])
    evidence = evidence_of(connection, [run.attempt_id for _, runs in sides for run in runs])
    return [
        _side(
            cell,
            runs,
            program=known[cell.program_id],
            manifest=None if cell.variant_id is None else variants[cell.variant_id].manifest,
            defaults=defaults[known[cell.program_id].harness],
            tally=tallies.get(cell.cell_id, Tally()),
            evidence=[evidence[run.attempt_id] for run in runs if run.attempt_id in evidence],
            orders=orders,
        )
        for cell, runs in sides
    ]


def _side(
    cell: CellRow,
    runs: Sequence[MeasuredRun],
    *,
    program: Program,
    manifest: Manifest | None,
    defaults: Mapping[str, SettingValue],
    tally: Tally,
    evidence: Sequence[Evidence],
    orders: OrderByAttempt,
) -> SideView:
    around: list[ConditionPair] = [(report.before, report.after) for report in evidence]
    return SideView.of(
        cell,
        variant=cell.variant_name,
        manifest=manifest,
        program=ProgramFacts.of(
            program,
            program.bundle,
            files=len(program.bundle.files),
            clock_covers=adapter_of(program).clock_covers,
        ),
        placements=_placements(runs),
        changed_settings=non_default_settings(cell.settings, defaults),
        jobs_by_outcome=tally.jobs_by_outcome,
        runs_by_quality=dict(Counter(str(run.quality) for run in runs)),
        quality_reasons=dict(Counter(reason for run in runs for reason in run.quality_reasons)),
        parser_versions=tuple(sorted({run.parser_version for run in runs})),
        conditions=condition_ranges(around),
        runs_without_evidence=len(runs) - len(evidence),
        runs=tuple(MeasurementView.of(run, order=orders.get(run.attempt_id)) for run in runs),
    )


def explain_device(connection: Connection, cell: CellRow, runs: Iterable[MeasuredRun]) -> ExplainedDevice:
    """Describe the phone as it was for each of the runs; as it is now where there are none."""
    device = devices.get_device(connection, cell.device_id)
    count_by_facts = Counter(run.facts_id for run in runs if run.facts_id is not None)
    facts = provenance.facts_by_id(connection, list(count_by_facts))
    builds = tuple(
        DeviceBuild(facts=facts[facts_id], runs=count) for facts_id, count in count_by_facts.items()
    )
    if not builds and device.facts is not None:
        builds = (DeviceBuild(facts=device.facts, runs=0),)
    return ExplainedDevice(device_id=device.device_id, label=device.label, host=device.host_id, builds=builds)


def evidence_of(connection: Connection, attempt_ids: Sequence[AttemptId]) -> dict[AttemptId, Evidence]:
    """Return the evidence that settled attempts; one whose evidence expired is missing."""
    reports = provenance.counted_reports(connection, attempt_ids)
    return {attempt_id: read_report(make_storable(body)) for attempt_id, body in reports.items()}


def _placements(runs: Sequence[MeasuredRun]) -> tuple[PlacementView, ...]:
    proofs: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for run in runs:
        proofs[run.actual_backend, run.accelerator].append(run.proof)
    return tuple(
        PlacementView(
            actual_backend=backend,
            accelerator=accelerator,
            runs=len(own),
            proof=own[-1],
            proofs=len(set(own)),
        )
        for (backend, accelerator), own in proofs.items()
    )


def positions_in_blocks(connection: Connection, cell: CellRow) -> PositionByJob:
    """Return the position of each job of the cell's device in its block, and the block's size."""
    blocks = provenance.fences_by_block(connection, cell.matrix_id, cell.device_id)
    return {
        job_id: (place, len(block))
        for block in blocks.values()
        for place, (_, job_id) in enumerate(block, start=1)
    }


def compared_cells(
    connection: Connection, matrix: Matrix, candidates: Mapping[CellId, CellRow]
) -> dict[CellId, SpeedupInputs]:
    """Return what the speedups of cells are made of; those without a baseline are missing."""
    compared = with_priors(connection, comparisons_of(connection, matrix, [*candidates.values()]))
    return {inputs.candidate.cell_id: inputs for inputs in compared}
