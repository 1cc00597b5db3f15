"""`farm export` writes what the farm has, continues, and writes again what changed."""

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farm.client.farm_client import FarmClient
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.errors import FarmUnreachable
from farm.services.results.interchange import export as exporting
from farm.web.app import create_app_with_pages
from farm.wire.documents.results.export import ExportChanges
from tests.architecture.sources import ROOT
from tests.cli.run.test_run import run
from tests.support.farm.http_farm import served
from tests.web.conftest import fill

# Of the extra `dev`; an older environment has neither.
duckdb = pytest.importorskip("duckdb")
parquet_files = pytest.importorskip("pyarrow.parquet")

#: Of conditions, this farm has none.
KINDS = ("measurements", "samples", "speedups", "devices")

#: Exports, and is killed when its second part is written and not yet in its place.
KILLED_EXPORT = """
import os, signal, sys
from pathlib import Path
from farm.cli.shell.main import main

parts = 0

def count(event, values):
    global parts
    if event == "os.rename" and Path(values[1]).name.startswith("part-"):
        parts += 1
        if parts == 2:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
main()
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A farm with matrices that are finished, failed and queued."""
    folder = tmp_path_factory.mktemp("exported")
    fill(folder)
    with served(create_app_with_pages(FarmConfig(data_dir=folder), SystemClock())) as (address, _):
        yield address


@pytest.fixture(autouse=True)
def at(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_URL", url)


def exported(out: Path, kind: str, *options: str, format: str = "parquet") -> None:
    assert run("export", kind, "--out", str(out), "--format", format, *options) == 0


def query(sql: str) -> list[dict[str, Any]]:
    # Not by DuckDB's own rows: their times need pytz.
    rows: list[dict[str, Any]] = duckdb.sql(sql).to_arrow_table().to_pylist()
    return rows


def test_duckdb_over_the_export_agrees_with_farm_speedups_to_the_last_digit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported(tmp_path, "speedups")
    capsys.readouterr()
    names = ("speedup", "ci_low", "ci_high", "log_error", "degrees", "baseline_ns", "candidate_ns", "p_value")
    names += ("rounds", "pairs", "excluded", "verdict", "reason", "cell_id")
    for matrix in (1, 2):
        assert run("speedups", str(matrix), "--json") == 0
        views = json.loads(capsys.readouterr().out)
        rows = query(
            f"SELECT * FROM read_parquet('{tmp_path}/speedups/**/*.parquet', hive_partitioning = true)"
            f" WHERE matrix_id = {matrix}"
        )
        assert views
        by_cell = {row["cell_id"]: row for row in rows}
        assert len(by_cell) == len(rows) == len(views)
        for view in views:
            row = by_cell[view["cell_id"]]
            assert {name: row[name] for name in names} == {name: view[name] for name in names}
            assert row["log_ratio"] == (math.log(view["speedup"]) if view["speedup"] else None)
            assert row["variant_digest"] == view["variant_digest"]
            assert row["baseline_variant_digest"] == view["baseline_setup"]["variant_digest"]


def test_speedups_can_be_computed_from_the_exported_measurements(tmp_path: Path) -> None:
    exported(tmp_path, "measurements")
    exported(tmp_path, "speedups")
    computed = query(
        f"""
        WITH m AS (
          FROM read_parquet('{tmp_path}/measurements/**/*.parquet') WHERE quality IN ('valid', 'noisy')
        )
        SELECT c.cell_id, avg(ln(b.value_ns / c.value_ns)) AS log_ratio, count(*) AS rounds
        FROM m c JOIN m b ON b.matrix_id = c.matrix_id AND b.device_id = c.device_id
          AND b.cell_index = c.baseline_index AND b.round = c.round AND b.block = c.block
        GROUP BY c.cell_id
        """
    )
    table = query(f"FROM read_parquet('{tmp_path}/speedups/**/*.parquet') WHERE speedup IS NOT NULL")
    by_cell = {row["cell_id"]: row for row in table}
    assert {row["cell_id"] for row in computed} == by_cell.keys()
    for row in computed:
        assert row["rounds"] == by_cell[row["cell_id"]]["rounds"]
        assert row["log_ratio"] == pytest.approx(by_cell[row["cell_id"]]["log_ratio"], abs=1e-12)


def test_the_query_of_the_page_has_the_numbers_of_speedups_by_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported(tmp_path, "speedups")
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    (sql,) = re.findall(r"    WITH newest AS \(.*?GROUP BY ALL\n", page, re.DOTALL)
    capsys.readouterr()
    assert run("speedups", "--by", "all", "--json") == 0
    (group,) = json.loads(capsys.readouterr().out)
    (row,) = query(sql.replace("'results/", f"'{tmp_path}/"))
    exact = ("model", "baseline", "candidate", "devices")
    assert {name: row[name] for name in exact} == {name: group[name] for name in exact}
    for name in ("speedup", "low", "high"):
        assert row[name] == pytest.approx(group[name], rel=1e-12)


def test_samples_are_the_numbers_that_the_tool_printed(tmp_path: Path) -> None:
    exported(tmp_path, "measurements")
    exported(tmp_path, "samples")
    rows = query(
        f"""
        SELECT m.value_ns, m.sample_count, len(s.samples_ns) AS n, list_median(s.samples_ns) AS middle
        FROM read_parquet('{tmp_path}/measurements/**/*.parquet') m
        JOIN read_parquet('{tmp_path}/samples/**/*.parquet') s USING (measurement_id)
        """
    )
    assert rows
    for row in rows:
        assert row["n"] == row["sample_count"]
        assert row["middle"] == row["value_ns"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_has_the_same_rows(tmp_path: Path, kind: str) -> None:
    for format in ("parquet", "csv", "jsonl"):
        exported(tmp_path / format, kind, format=format)
    files = {
        format: sorted((tmp_path / format / kind).rglob(f"*.{format}"))
        for format in ("parquet", "csv", "jsonl")
    }
    lines = [json.loads(line) for path in files["jsonl"] for line in path.read_text().splitlines()]
    table = [row for path in files["csv"] for row in csv.DictReader(path.read_text().splitlines())]
    parquet = [row for path in files["parquet"] for row in parquet_files.ParquetFile(path).read().to_pylist()]
    assert lines
    assert len(lines) == len(table) == len(parquet)
    for line, cells, row in zip(lines, table, parquet, strict=True):
        assert line.keys() == cells.keys() == row.keys()
        for name, value in line.items():
            if isinstance(value, bool):
                assert cells[name] == str(value).lower()
            elif isinstance(value, float | int):
                assert float(cells[name]) == value == row[name]
            elif value is None:
                assert (cells[name], row[name]) == ("", None)
            elif isinstance(value, list):
                assert json.loads(cells[name]) == value == row[name]
            elif isinstance(value, str):
                assert cells[name] == value


def test_files_are_apart_by_month_and_a_second_call_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported(tmp_path, "measurements")
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet"))
    assert all(path.startswith("measurements/month=20") for path in files)
    before = query(f"FROM read_parquet('{tmp_path}/measurements/**/*.parquet') ORDER BY measurement_id")
    capsys.readouterr()
    exported(tmp_path, "measurements", "--json")
    done = json.loads(capsys.readouterr().out)
    assert done["rows"] == len(before)
    assert (
        query(f"FROM read_parquet('{tmp_path}/measurements/**/*.parquet') ORDER BY measurement_id") == before
    )


def test_an_interrupted_export_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "EXPORT_BLOCK", 4)
    ask = FarmClient.exported_measurements
    asked: list[int] = []

    def break_at_third(client: FarmClient, *, after: int, **span: Any) -> Any:
        asked.append(after)
        if len(asked) == 3:
            raise FarmUnreachable("gone")
        return ask(client, after=after, **span)

    monkeypatch.setattr(FarmClient, "exported_measurements", break_at_third)
    assert run("export", "measurements", "--out", str(tmp_path)) != 0
    exported(tmp_path, "measurements")
    assert asked[:4] == [0, 3, 7, 7]
    exported(tmp_path / "whole", "measurements")
    sql = "FROM read_parquet('{}/measurements/month=*/*.parquet') ORDER BY measurement_id"
    assert query(sql.format(tmp_path)) == query(sql.format(tmp_path / "whole"))


@pytest.mark.long
def test_an_export_that_was_killed_is_completed_by_the_next(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "EXPORT_BLOCK", 1)
    call = [sys.executable, "-c", KILLED_EXPORT, "export", "measurements", "--format", "jsonl"]
    environment = {**os.environ, "FARM_URL": url}
    ended = subprocess.run([*call, "--out", str(tmp_path)], env=environment, check=False, timeout=300)
    assert ended.returncode == -signal.SIGKILL
    (part,) = tmp_path.rglob("part-*.jsonl")
    left = part.with_name(".part-00000007.jsonl.unfinished")
    left.write_text("{")
    exported(tmp_path, "measurements", format="jsonl")
    exported(tmp_path / "whole", "measurements", format="jsonl")
    assert not left.exists()
    sql = "FROM read_json('{}/measurements/month=*/*.jsonl') ORDER BY measurement_id"
    rows = query(sql.format(tmp_path))
    assert len(rows) > 20
    assert rows == query(sql.format(tmp_path / "whole"))


def test_a_part_that_is_of_another_month_by_now_is_there_once_after_a_killed_export(tmp_path: Path) -> None:
    exported(tmp_path, "speedups", format="csv")
    manifest = tmp_path / "speedups" / "_manifest.json"
    # As if the export had been killed before it wrote its manifest, in an earlier month.
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "parts": {}}))
    (month,) = (tmp_path / "speedups").glob("month=*")
    files = sorted(path.name for path in month.iterdir())
    month.rename(month.with_name("month=2020-01"))
    exported(tmp_path, "speedups", format="csv")
    found = sorted(path.relative_to(tmp_path / "speedups") for path in tmp_path.rglob("part-*"))
    assert [str(path) for path in found] == [f"{month.name}/{name}" for name in files]


def test_another_format_span_or_farm_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(tmp_path, "devices", format="csv")
    assert run("export", "devices", "--out", str(tmp_path), "--format", "jsonl") == 2
    assert "has files of the format csv, not jsonl" in capsys.readouterr().err
    assert run("export", "devices", "--out", str(tmp_path), "--since", "1d") == 2
    assert "leave --since out" in capsys.readouterr().err
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "mine.txt").write_text("")
    assert run("export", "samples", "--out", str(tmp_path)) == 2
    assert "files that no export wrote" in capsys.readouterr().err
    changes = FarmClient.export_changes

    def of_another_farm(client: FarmClient, **question: Any) -> ExportChanges:
        return changes(client, **question).model_copy(update={"epoch": "another"})

    monkeypatch.setattr(FarmClient, "export_changes", of_another_farm)
    assert run("export", "devices", "--out", str(tmp_path)) == 2
    assert "another farm or release, or before the database was restored" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_an_error_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    assert run("export", "devices", "--out", str(tmp_path / "file"), "--format", "csv") == 2
    assert "cannot be written: Not a directory" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_a_span_of_time_leaves_the_rest_out(tmp_path: Path) -> None:
    exported(tmp_path / "none", "measurements", "--until", "2000-01-01", format="csv")
    assert list(tmp_path.rglob("*.csv")) == []
    exported(tmp_path / "all", "measurements", "--since", "2000-01-01", format="csv")
    assert list(tmp_path.rglob("*.csv"))


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert run("export", "devices", "--out", str(tmp_path)) == 2
    assert "benchfarm[export]" in capsys.readouterr().err


class TestChanges:
    """Of a farm of its own, which changes."""

    @pytest.fixture
    def url(self, tmp_path: Path) -> Iterator[str]:
        fill(tmp_path / "data")
        with served(create_app_with_pages(FarmConfig(data_dir=tmp_path / "data"), SystemClock())) as (
            address,
            _,
        ):
            yield address

    def test_what_is_retracted_is_written_again_in_final_parts_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exporting, "EXPORT_BLOCK", 4)
        for kind in ("measurements", "speedups"):
            exported(tmp_path, kind)
        assert run("retract", "--matrix", "1", "--reason", "its battery was swollen", "--yes") == 0
        for kind in ("measurements", "speedups"):
            exported(tmp_path, kind)
        qualities = query(
            "SELECT quality, retracted_by IS NOT NULL AS retracted, count(*) AS n,"
            " count(DISTINCT job_id) AS jobs"
            f" FROM read_parquet('{tmp_path}/measurements/**/*.parquet') WHERE matrix_id = 1 GROUP BY ALL"
        )
        assert [(row["quality"], row["retracted"]) for row in qualities] == [("withdrawn", True)], qualities
        assert qualities[0]["n"] == qualities[0]["jobs"]
        rows = query(f"FROM read_parquet('{tmp_path}/speedups/**/*.parquet') WHERE matrix_id = 1")
        assert rows
        assert {(row["speedup"], row["verdict"]) for row in rows} == {(None, "undecided")}

    def test_final_parts_are_not_asked_for_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        exported(tmp_path, "speedups")
        asked: list[int] = []
        ask = FarmClient.speedups

        def note(client: FarmClient, *, matrix_id: Any, **filters: Any) -> Any:
            asked.append(matrix_id)
            return ask(client, matrix_id=matrix_id, **filters)

        monkeypatch.setattr(FarmClient, "speedups", note)
        exported(tmp_path, "speedups")
        # The third one still waits, and points of the second one may still be computed.
        assert asked[-1] == 3
        assert 1 not in asked
