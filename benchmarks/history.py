"""Questions over a long history, their cost at half of it, and what points cost beside ingest.

A session of one virtual device is measured by the farm's own services, and copied by SQL with its points:
devices x matrices of equal cells. Questions are asked at half of the matrices and at all; then measurements
are inserted again, and their points computed, as the farm's worker does. Every figure is set
against another one of the same run: half of the history, ingest without points, and, where duckdb and pyarrow
are installed (the extra `bench`), DuckDB over Parquet that is sorted by its key.

    .venv/bin/python benchmarks/history.py [--quick] [--devices N] [--cells N] [--matrices N]

1,000 devices, 50 cells and 40 matrices of 5 rounds are 10,000,000 measurements.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import sqlalchemy as sa
from machine import machine_facts
from sqlalchemy.engine import Connection

from farm.core.results.history.recorded_change import (
    ChangeCause,
    ChangedPart,
    ChangedSeries,
    ChangedVersion,
    FoundChange,
)
from farm.core.results.statistics.interval import LogInterval
from farm.core.results.statistics.log_sums import LogSums
from farm.database import tables
from farm.database.engine import opened_engine
from farm.database.migrate import upgrade
from farm.database.transaction import Tx, bind_tx
from farm.services.matrices.views import list_matrix_summaries
from farm.services.results.history.changes import list_changes
from farm.services.results.history.detection import detect_recorded, open_database
from farm.services.results.history.group_speedups import group_speedups
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.history.trends import list_histories
from farm.store.matrices.search import MatrixFilter
from farm.store.results.history.changes import add_change
from farm.store.results.history.newest_points import SlotPair, list_comparisons, newest_sums
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView

sys.path.insert(0, str(Path(__file__).parents[1]))
from copied_history import BATCH, History, ignore_foreign_keys
from history_parquet import check_same, open_parquet

from tests.support.database.postgres import NoPostgres, running_postgres
from tests.support.farm.service_fixture import FarmRig

#: Regressions that are recorded, over 400 days.
_CHANGES = 5000
_TIMES = 30


def _record_changes(history: History) -> None:
    """Record a change of one series for each of the first points: as many regressions as nobody reads."""
    rig = history.rig
    rows = rig.rows(
        "SELECT cell_id, series_id, baseline_series_id FROM points WHERE baseline_slot IS NOT NULL"
        f" ORDER BY cell_id LIMIT {_CHANGES}"
    )

    def record(connection: Connection) -> None:
        for number, row in enumerate(rows):
            at = rig.clock.now() - timedelta(days=400 * number / len(rows))
            change = FoundChange(
                cause=ChangeCause.PROGRAM,
                scope={"model": "mobilenet_v2"},
                delta=0.05,
                se_delta=0.004,
                before_at=at,
                since_at=at,
                told_at=at,
                devices=1,
                of_devices=history.devices,
                versions=[ChangedVersion(part=ChangedPart.PROGRAM, old="a" * 64, new="b" * 64)],
                series=[ChangedSeries(**row, delta=0.05)],
            )
            assert add_change(Tx(connection, at), change) is not None

    rig.write(record)


def _search_s(history: History) -> float:
    """Return the seconds of one search for changes in the points, as the farm's own process does it."""
    began_s = time.monotonic()
    url = history.rig.database.engine.url.render_as_string(hide_password=False)
    with closing(open_database(url)) as database:
        database.read(detect_recorded, now=history.rig.clock.now())
    return time.monotonic() - began_s


def _p50_ms(ask: Callable[[], object], times: int = _TIMES) -> float:
    spent = []
    for _ in range(times):
        began_s = time.perf_counter()
        ask()
        spent.append(1000 * (time.perf_counter() - began_s))
    return median(spent)


def _over_all_devices(history: History) -> GroupSpeedupView:
    baseline, candidate = history.compared
    (view,) = history.rig.read(
        group_speedups, GroupBy.ALL, model="mobilenet_v2", baseline=baseline, candidate=candidate
    )
    assert view.devices == history.devices, view
    return view


def _questions(history: History) -> dict[str, Callable[[], object]]:
    rig = history.rig
    _, candidate = history.compared
    (last_cell,) = rig.rows(
        f"SELECT label FROM cells WHERE matrix_id = 1 AND cell_index = {history.cells - 1}"
    )
    # The oldest one: its name has parts that no other has.
    (oldest,) = rig.rows("SELECT name FROM matrices WHERE matrix_id = 1")
    last = rig.rows("SELECT MAX(created_at) AS at FROM matrices")[0]["at"]
    since = tables.UtcTime().process_result_value(last - 5 * 86_400_000_000, rig.database.engine.dialect)

    matrices = bind_tx(list_matrix_summaries, now=rig.clock.now())

    def listed(**which: object) -> object:
        return rig.read(matrices, limit=10, which=MatrixFilter(**which))  # type: ignore[arg-type]

    year_ago = rig.clock.now() - timedelta(days=365)
    return {
        "latest speedup over all devices": partial(_over_all_devices, history),
        "regressions --since 1y": lambda: rig.read(list_changes, since=year_ago, limit=20),
        "all speedups over all devices": lambda: rig.read(group_speedups, GroupBy.ALL),
        "trend of one series": lambda: rig.read(list_histories, device="phone-0", limit=1),
        "trend of one, found by its label": lambda: rig.read(
            list_histories, device="phone-0", variant=last_cell["label"]
        ),
        # That of `warmup=1` is a part of that of `warmup=10`.
        "trends found by a part of labels": lambda: rig.read(
            list_histories, device="phone-0", variant=candidate
        ),
        "speedups of one device": lambda: rig.read(list_latest_speedups, device="phone-0", pooled=3),
        "first page of all speedups": lambda: rig.read(list_latest_speedups, limit=20, pooled=3),
        "matrices of five days": lambda: listed(since=since),
        "matrices of a name": lambda: listed(name="nightly 1"),
        "matrix of a rare name": lambda: listed(name=oldest["name"]),
        "matrices of a person": lambda: listed(submitted_by="user"),
    }


def _ingest(history: History, measurements: int) -> tuple[float, float, float]:
    """Return measurements per second that are inserted in batches: alone, with marks, and with points."""
    rig = history.rig
    rows = _take_measurements(rig, limit=measurements)
    began_s = time.perf_counter()
    for start in range(0, len(rows), BATCH):
        rig.write(_insert, rows[start : start + BATCH])
    inserted_s = time.perf_counter() - began_s
    history.mark()
    marked_s = time.perf_counter() - began_s
    history.compute()
    return len(rows) / inserted_s, len(rows) / marked_s, len(rows) / (time.perf_counter() - began_s)


def _insert(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    ignore_foreign_keys(connection)
    connection.execute(tables.measurements.insert(), [dict(row) for row in rows])


def _take_measurements(rig: FarmRig, *, limit: int) -> list[Mapping[str, object]]:
    """Remove the newest measurements, to insert them again."""
    own = tables.measurements

    def take(connection: Connection) -> list[Mapping[str, object]]:
        ignore_foreign_keys(connection)
        newest = sa.select(own).order_by(own.c.measurement_id.desc()).limit(limit)
        rows = [dict(row) for row in connection.execute(newest).mappings()]
        last = rows[-1]["measurement_id"]
        connection.execute(own.delete().where(own.c.measurement_id >= last))
        connection.execute(tables.point_progress.update().values(measurement_id=last - 1))
        return rows[::-1]

    return rig.write(take)


def _numbers_over_devices(history: History, slots: SlotPair) -> tuple[LogSums, LogInterval]:
    """Return the numbers of the same answer, of a pair that is known: what DuckDB is asked for."""
    found, _ = history.rig.read(newest_sums, slots, None)
    (own,) = found.values()
    return own.sums, own.sums.interval()


def _compared_slots(history: History) -> SlotPair:
    (slots,) = (
        own.slots
        for own in history.rig.read(list_comparisons)
        if (own.baseline, own.candidate) == history.compared
    )
    return slots


def _in_turn_ms(*questions: Callable[[], object]) -> list[float]:
    """Return the median time of each question; they are asked in turn, each time another one first."""
    spent: list[list[float]] = [[] for _ in questions]
    for time_no in range(_TIMES):
        for place in range(len(questions)):
            number = (time_no + place) % len(questions)
            spent[number].append(_p50_ms(questions[number], 1))
    return [median(own) for own in spent]


def _print_beside_duckdb(history: History, by_duckdb: Callable[[], tuple[Any, ...]]) -> None:
    """Print the latest speedup over all devices by DuckDB, its numbers by the farm, and the whole answer."""
    whole = partial(_over_all_devices, history)
    numbers_alone = partial(_numbers_over_devices, history, _compared_slots(history))
    view, (sums, _) = whole(), numbers_alone()
    check_same(view, by_duckdb())
    assert view.speedup == math.exp(sums.speedup / sums.devices), (view, sums)
    parquet_ms, numbers_ms, whole_ms = _in_turn_ms(by_duckdb, numbers_alone, whole)
    print(f"  {'latest speedup by DuckDB, in turn':34}{parquet_ms:8.2f} ms")
    for title, own_ms in (
        ("its numbers of a known pair", numbers_ms),
        ("the whole answer to its labels", whole_ms),
    ):
        print(f"  {title:34}{own_ms:8.2f} ms  {parquet_ms / own_ms:5.1f} x as quick as DuckDB")


def _measure(name: str, url: str | None, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rig = FarmRig(Path(folder), url)
        try:
            history = History(rig, devices=options.devices, cells=options.cells)
            history.grow(options.matrices // 2)
            _record_changes(history)
            before = {question: _p50_ms(ask) for question, ask in _questions(history).items()}
            history.grow(options.matrices)
            total = options.matrices * options.devices * history.size
            print(f"\n{name}: {total:,} measurements, {options.devices} devices, {options.cells} cells")
            after = {question: _p50_ms(ask) for question, ask in _questions(history).items()}
            for question, spent_ms in after.items():
                ratio = spent_ms / before[question]
                print(f"  {question:34}{spent_ms:8.2f} ms  {ratio:5.2f} x that at half of the history")
            (points,) = rig.rows("SELECT COUNT(*) AS count FROM points WHERE replica = 1 AND rounds > 0")
            print(f"  a search for changes in {points['count']:,} points: {_search_s(history):.1f} s")
            by_duckdb = open_parquet(rig, Path(folder), cells=options.cells)
            if by_duckdb is None:
                print("  DuckDB over sorted Parquet: not installed (the extra `bench`)")
            else:
                _print_beside_duckdb(history, by_duckdb)
            plain, marked, with_points = _ingest(history, options.ingest)
            print(
                f"  inserts in batches of {BATCH}: {plain:,.0f}/s, with marks {marked:,.0f}/s,"
                f" with their points {with_points:,.0f}/s, {with_points / plain:.2f} of it"
            )
        finally:
            rig.close()


def main() -> None:
    """Measure on the databases that are asked for, and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a short history: does it work?")
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--cells", type=int, default=10, help="of a device, the baseline among them")
    parser.add_argument("--matrices", type=int, default=20)
    parser.add_argument("--ingest", type=int, default=20_000, help="so many measurements are inserted again")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="on this one only")
    options = parser.parse_args()
    if options.quick:
        options.devices, options.cells, options.matrices = 5, 3, 4
    if options.matrices < 2:
        parser.error("--matrices must be 2 at least: half of them is measured first")
    print(machine_facts())
    with ExitStack() as stack:
        if options.database != "postgresql":
            _measure("SQLite", None, options)
        if options.database != "sqlite":
            try:
                server = stack.enter_context(running_postgres())
            except NoPostgres as reason:
                print(f"PostgreSQL: {reason}")
                return
            url = server.url(stack.enter_context(server.database()))
            with opened_engine(url) as engine:
                upgrade(engine)
            _measure("PostgreSQL", url, options)


if __name__ == "__main__":
    main()
