"""SQL views say what the export and `farm speedups` say, and an analyst's role reads nothing else."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from farm.core.runs.samples import encode_samples
from farm.database import tables
from farm.services.results.interchange.export import export_measurements, export_samples
from farm.wire.base import Wire
from farm.wire.documents.results.export import DeviceRow, MeasurementRow, SampleRow, SpeedupRow
from tests.architecture.sources import ROOT
from tests.services.results.interchange.test_export import EVERYTHING, measured
from tests.support.database.postgres import PostgresServer
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig

PAGE = ROOT / "docs" / "sql-views.md"
VIEWS = ("analysis_devices", "analysis_measurements", "analysis_samples", "analysis_speedups")


def test_the_view_of_measurements_has_the_rows_of_the_export(farm: FarmRig) -> None:
    measured(farm)
    exported = farm.read(export_measurements, EVERYTHING).rows
    rows = farm.rows("SELECT * FROM analysis_measurements ORDER BY measurement_id")
    assert len(rows) == len(exported) == 10
    different = {"settings", "quality_reasons", "metrics", "measured_at"}
    same = (rows[0].keys() & MeasurementRow.model_fields.keys()) - different
    assert same | different == rows[0].keys()
    for row, exported_row in zip(rows, exported, strict=True):
        values = exported_row.model_dump()
        assert {name: row[name] for name in same} == {name: values[name] for name in same}
        assert str(row["measured_at"])[:10] == str(values["measured_at"])[:10]


def test_what_was_retracted_is_a_withdrawn_row_only(farm: FarmRig) -> None:
    measured(farm)
    sql = "SELECT quality, count(*) AS n FROM analysis_measurements GROUP BY quality"
    assert [(row["quality"], row["n"]) for row in farm.rows(sql)] == [("valid", 10)]


def test_the_view_of_speedups_has_the_ratio_of_farm_speedups(farm: FarmRig) -> None:
    measured(farm)
    compute_points(farm)
    (view,) = farm.speedups()
    (row,) = farm.rows("SELECT * FROM analysis_speedups")
    assert row["cell_id"] == view.cell_id
    assert row["speedup"] == pytest.approx(view.speedup, rel=1e-12)
    assert (row["rounds"], row["candidate_ns"]) == (view.rounds, pytest.approx(view.candidate_ns, rel=1e-12))
    assert (row["precision"], row["baseline_precision"]) == (view.precision, view.baseline_setup.precision)
    assert not row["aa"]


def test_the_view_of_devices_has_every_device(farm: FarmRig) -> None:
    measured(farm)
    (row,) = farm.rows("SELECT * FROM analysis_devices")
    assert (row["device_id"], row["device_model"], row["health"]) == ("virtual-1", "virtual phone", "good")


def test_the_view_of_samples_has_the_samples_of_the_export_to_the_last_digit(farm: FarmRig) -> None:
    measured(farm)
    far = (0, 2**63 - 1, 1, 2**62 + 1, 0, 2**53 + 1)
    many = tuple(5_000_000 + 7919 * place % 400_000 for place in range(3000))
    numbers = [
        row["measurement_id"] for row in farm.rows("SELECT measurement_id FROM measurements ORDER BY 1")
    ]
    with farm.database.engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        for number, samples_ns in zip(numbers, (far, many, (0, 0), (13_000, 12_000, 14_000)), strict=False):
            connection.execute(
                tables.measurements.update()
                .where(tables.measurements.c.measurement_id == number)
                .values(samples=encode_samples(samples_ns))
            )
    exported = farm.read(export_samples, EVERYTHING).rows
    assert [tuple(row.samples_ns) for row in exported[:2]] == [far, many]
    rows = farm.rows("SELECT * FROM analysis_samples ORDER BY measurement_id, iteration")
    assert [(row["measurement_id"], row["cell_id"], row["iteration"], row["sample_ns"]) for row in rows] == [
        (run.measurement_id, run.cell_id, iteration, sample_ns)
        for run in exported
        for iteration, sample_ns in enumerate(run.samples_ns)
    ]


def test_the_page_lists_every_column_of_the_views(farm: FarmRig) -> None:
    measured(farm)
    compute_points(farm)
    text = PAGE.read_text(encoding="utf-8")
    for view in VIEWS:
        (row,) = farm.rows(f"SELECT * FROM {view} LIMIT 1")
        section = text.partition(f"### {view}\n")[2].partition("\n### ")[0]
        listed = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        assert re.findall(r"`(\w+)`", " ".join(listed)) == list(row), view


def test_columns_of_views_have_the_names_of_the_export(farm: FarmRig) -> None:
    measured(farm)
    compute_points(farm)
    exported: dict[str, type[Wire]] = dict(
        zip(VIEWS, (DeviceRow, MeasurementRow, SampleRow, SpeedupRow), strict=True)
    )
    own = {
        "analysis_samples": {"iteration", "sample_ns"},
        "analysis_speedups": {"series_id", "baseline_series_id", "se_speedup", "newest"},
    }
    names = PAGE.read_text(encoding="utf-8").partition("\n## Names\n")[2]
    for view, document in exported.items():
        (row,) = farm.rows(f"SELECT * FROM {view} LIMIT 1")
        assert row.keys() - document.model_fields.keys() == own.get(view, set())
    assert all(f"`{name}`" in names for name in ("iteration", "sample_ns", "se_speedup", "excluded"))


@contextmanager
def analyst(postgres: PostgresServer, database: str) -> Iterator[psycopg.Connection]:
    """A connection of a role that is made as the page says."""
    role = f"analyst_{os.getpid()}"
    (block,) = re.findall(r"```sql\n(CREATE ROLE.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with psycopg.connect(postgres.conninfo(database), autocommit=True) as owner:
        for statement in block.split(";"):
            if statement.strip():
                owner.execute(statement.replace("analyst", role).encode())
        try:
            with psycopg.connect(f"{postgres.conninfo(database)} user={role}", autocommit=True) as connection:
                yield connection
        finally:
            owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


@pytest.mark.long
@pytest.mark.on_postgresql
def test_an_analyst_reads_the_views_and_nothing_else(postgres: PostgresServer) -> None:
    refusals = (
        psycopg.errors.InsufficientPrivilege,
        psycopg.errors.ReadOnlySqlTransaction,
        psycopg.errors.ObjectNotInPrerequisiteState,
    )
    with postgres.database("migrated") as database, analyst(postgres, database) as connection:
        for view in VIEWS:
            assert connection.execute(f"SELECT count(*) FROM {view}".encode()).fetchone() == (0,)
        for statement in (
            "SELECT * FROM measurements",
            "SELECT * FROM access_tokens",
            "DELETE FROM analysis_devices",
            "UPDATE analysis_samples SET sample_ns = 0",
            "CREATE TABLE mine (n int)",
        ):
            with pytest.raises(refusals):
                connection.execute(statement.encode())
