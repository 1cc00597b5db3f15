"""Pages of exported rows are ranges of measurements; looks at devices are those of the reports."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from farm.cli.results.interchange.row_files import FileFormat, open_row_file
from farm.core.devices.condition import Condition, CpuPolicy, ThermalStatus
from farm.core.runs.evidence import Evidence
from farm.services.results.interchange.export import (
    ExportRange,
    export_changes,
    export_conditions,
    export_measurements,
    export_samples,
)
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.results.export import ConditionRow, MeasurementPage
from tests.services.checks.test_in_run_findings import FULL, trace_of
from tests.support.farm.service_fixture import FarmRig, good_evidence

EVERYTHING = ExportRange(after=0, before=2**53, limit=2000)


def measured(farm: FarmRig, *, conditions: bool = False) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host("virtual-1")
    farm.submit(rounds=5)

    def answer(assignment: Assignment) -> Evidence:
        now = farm.clock.now()
        policy = CpuPolicy(name="policy0", cores=(0, 1), max_hz=2_000_000_000)
        before = Condition(taken_at=now, skin_c=30.5, thermal_status=ThermalStatus.NONE, cpus=(policy,))
        evidence = good_evidence(assignment, sample_us=10_000.0)
        trace = trace_of(FULL, FULL, FULL)
        return replace(evidence, before=before, after=replace(before, skin_c=31.0), trace=trace)

    host.run(answer if conditions else None)


def pages(farm: FarmRig, *, limit: int, **span: object) -> list[MeasurementPage]:
    found, after = [], 0
    while True:
        page = farm.read(export_measurements, ExportRange(after=after, before=2**53, limit=limit, **span))  # type: ignore[arg-type]
        found.append(page)
        if page.next_after is None:
            return found
        after = page.next_after


def test_pages_together_have_every_measurement_once(farm: FarmRig) -> None:
    measured(farm)
    rows = [row.measurement_id for page in pages(farm, limit=3) for row in page.rows]
    stored = farm.rows("SELECT measurement_id FROM measurements ORDER BY measurement_id")
    assert rows == [row["measurement_id"] for row in stored]
    assert len(rows) == 10


def test_a_span_of_time_makes_pages_emptier_and_not_longer(farm: FarmRig) -> None:
    measured(farm)
    begun = min(row.measured_at for page in pages(farm, limit=100) for row in page.rows)
    few = pages(farm, limit=3, until=begun + timedelta(seconds=2))
    assert len(few) == len(pages(farm, limit=3))
    assert 1 <= sum(len(page.rows) for page in few) < 10


def test_looks_at_a_device_are_before_during_and_after_its_run(farm: FarmRig, tmp_path: Path) -> None:
    measured(farm, conditions=True)
    rows = farm.read(export_conditions, EVERYTHING).rows
    first = [row for row in rows if row.measurement_id == rows[0].measurement_id]
    assert [row.moment for row in first] == ["before", "during", "during", "during", "after"]
    assert (first[0].skin_c, first[-1].skin_c) == (30.5, 31.0)
    assert first[0].cpu_limit_hz == [2_000_000_000]
    assert first[0].cpu_clock_hz == [None]
    assert {tuple(row.cpu_limit_hz) for row in first[1:4]} == {(FULL * 1000,)}
    assert all(row.skin_c is None for row in first[1:4])
    parquet = pytest.importorskip("pyarrow.parquet")
    file = open_row_file(FileFormat.PARQUET, tmp_path / "rows.parquet", ConditionRow)
    file.write(first)
    file.finish()
    table = parquet.ParquetFile(tmp_path / "rows.parquet").read().to_pylist()
    assert table == [row.model_dump() for row in first]


def test_a_run_without_its_report_has_no_looks(farm: FarmRig) -> None:
    measured(farm)
    assert farm.read(export_conditions, EVERYTHING).rows == []


def test_changes_name_blocks_and_matrices(farm: FarmRig) -> None:
    measured(farm)
    now = farm.clock.now()
    nothing = farm.read(export_changes, after=0, since=None, now=now)
    assert (nothing.blocks, nothing.matrices, nothing.measurement_id) == ((), (), 10)
    farm.clock.advance(60)
    unchanged = farm.read(export_changes, after=10, since=farm.clock.now(), now=now)
    assert (unchanged.blocks, set(unchanged.matrices) - {1}) == ((), set())
    measured_later = farm.read(export_changes, after=4, since=farm.clock.now(), now=now)
    assert measured_later.matrices == (1,)


def test_samples_are_unpacked(farm: FarmRig) -> None:
    measured(farm)
    rows = farm.read(export_samples, EVERYTHING).rows
    assert {tuple(row.samples_ns) for row in rows} == {(1_000_000,) * 5}
