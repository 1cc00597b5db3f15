"""One cell with all its runs, as explanations show it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId
from farm.core.base.setting_values import non_default_settings
from farm.core.devices.condition_range import ConditionPair, condition_ranges
from farm.core.runs.evidence import Evidence
from farm.services.files.adapters import adapter_of, default_of_flags
from farm.store.devices import devices
from farm.store.files import programs
from farm.store.files import variants as variant_store
from farm.store.files.programs import Program
from farm.store.jobs import counts as job_counts
from farm.store.matrices.matrices import CellRow
from farm.store.results import provenance
from farm.store.results.provenance import MeasuredRun
from farm.wire.agents.protocol import Report
from farm.wire.documents.results.explain import (
    DeviceBuild,
    ExplainedDevice,
    MeasurementView,
    PlacementView,
    ProgramFacts,
    SideView,
)
from farm.wire.storable_text import make_storable

_REPORT = TypeAdapter(Report)


def explain_side(connection: Connection, cell: CellRow, runs: Sequence[MeasuredRun]) -> SideView:
    """A cell with some of its runs, or all."""
    program = programs.get_program(connection, cell.program_id)
    defaults = default_of_flags(connection, program.harness)
    evidence = evidence_of(connection, [run.attempt_id for run in runs])
    around: list[ConditionPair] = [(each.before, each.after) for each in evidence.values()]
    return SideView(
        cell_id=cell.cell_id,
        label=cell.label,
        variant=cell.variant_name,
        manifest=None
        if cell.variant_id is None
        else variant_store.get_variant(connection, cell.variant_id).manifest,
        program=_program_facts(program),
        backend=cell.backend,
        placements=_placements(runs),
        settings=dict(cell.settings),
        changed_settings=non_default_settings(cell.settings, defaults),
        jobs_by_outcome=job_counts.tally_of_cell(connection, cell.cell_id).jobs_by_outcome,
        runs_by_quality=dict(Counter(str(run.quality) for run in runs)),
        quality_reasons=dict(Counter(reason for run in runs for reason in run.quality_reasons)),
        parser_versions=tuple(sorted({run.parser_version for run in runs})),
        conditions=condition_ranges(around),
        runs_without_evidence=len(runs) - len(evidence),
        runs=tuple(run_view(run) for run in runs),
    )


def explain_device(connection: Connection, cell: CellRow, runs: Iterable[MeasuredRun]) -> ExplainedDevice:
    """The phone as it was for each of the runs; as it is now where there are none."""
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
    """What settled attempts; one whose evidence expired is missing."""
    reports = provenance.counted_reports(connection, attempt_ids)
    return {
        attempt_id: _REPORT.validate_json(make_storable(body)).evidence
        for attempt_id, body in reports.items()
    }


def run_view(run: MeasuredRun) -> MeasurementView:
    """A run as documents have it."""
    return MeasurementView.model_validate({name: getattr(run, name) for name in MeasurementView.model_fields})


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


def _program_facts(program: Program) -> ProgramFacts:
    return ProgramFacts(
        harness=program.harness,
        abi=program.abi,
        digest=program.digest,
        files=len(program.bundle.files),
        size_bytes=program.bundle.size_bytes,
        clock_covers=adapter_of(program).clock_covers,
    )
