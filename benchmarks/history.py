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

from farm.api.agents.point_worker import MARK_AT_ONCE
from farm.core.results.history.recorded_change import (
    ChangeCause,
    ChangedPart,
    ChangedSeries,
    ChangedVersion,
    FoundChange,
)
from farm.core.results.history.session_point import SessionPoint
from farm.database import tables
from farm.database.engine import opened_engine
from farm.database.migrate import upgrade
from farm.database.transaction import Tx, bind_tx
from farm.services.matrices.views import list_matrix_summaries
from farm.services.results.history.changes import list_changes
from farm.services.results.history.detection import detect_recorded, open_database
from farm.services.results.history.group_speedups import group_speedups
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.history.session_points import (
    QUIET_S,
    find_due_sessions,
    points_of_piece,
    session_pieces,
    store_points,
)
from farm.services.results.history.trends import list_histories
from farm.store.matrices.search import MatrixFilter, index_names
from farm.store.results.history.changes import add_change
from farm.store.results.history.stale_points import has_unmarked, mark_measured
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView

sys.path.insert(0, str(Path(__file__).parents[1]))
from history_parquet import check_same, open_parquet

from tests.support.database.postgres import NoPostgres, running_postgres
from tests.support.farm.service_fixture import FarmRig, good_evidence, plan_of

ROUNDS = 5
_BATCH = 100
#: Regressions that are recorded, over 400 days.
_CHANGES = 5000
_TIMES = 30
#: Of SQLite while rows are copied: with the driver's 2 MB, each row would read a page of each index.
_CACHE_KB = 1_500_000


class History:
    """A farm whose one session is copied to further devices and matrices."""

    def __init__(self, rig: FarmRig, *, devices: int, cells: int) -> None:
        self.rig, self.devices, self.cells = rig, devices, cells
        rig.variant()
        host = rig.host()
        host.plug_in("phone-0")
        host.earn_health()
        axes = {
            "model": "mobilenet_v2",
            "precision": "float32",
            "format": "torchscript",
            "backend": "cpu",
            "warmup": list(range(cells)),
        }
        rig.submit(axes=axes, baseline={"warmup": 0}, rounds=ROUNDS, devices={"virtual": True})
        count = 0

        def answer(assignment: object) -> object:
            nonlocal count
            count += 1
            plan = plan_of(assignment)  # type: ignore[arg-type]
            us = 1000.0 + 10.0 * float(plan.settings.get("warmup", 0)) + count * 7 % 20
            return good_evidence(assignment, sample_us=us)  # type: ignore[arg-type]

        host.run(answer, limit=10**6)  # type: ignore[arg-type]
        self._matrices = 1
        #: Of a session: small blocks have a start of the baseline each, so more than cells x rounds.
        self.size = int(rig.rows("SELECT MAX(measurement_id) AS size FROM measurements")[0]["size"])
        labels = rig.rows("SELECT label FROM cells ORDER BY cell_index")
        #: The labels of baseline and candidate of questions about one comparison.
        self.compared: tuple[str, str] = (labels[0]["label"], labels[1]["label"])
        engine = rig.database.engine
        if engine.dialect.name == "sqlite":
            # Of no effect within a transaction.
            sa.event.listen(engine, "connect", _prepare_copies)
            engine.dispose()
        self.compute()
        self.write(partial(_copy_devices, devices=devices))

    def grow(self, matrices: int) -> None:
        """Copy the first matrix until there are so many, on all devices."""
        self.write(
            partial(
                _copy_sessions, first=self._matrices, last=matrices, devices=self.devices, cells=self.cells
            )
        )
        self._matrices = matrices
        self.rig.write(bind_tx(index_names, now=self.rig.clock.now()), limit=matrices)

    def compute(self) -> tuple[int, float]:
        """Compute all points that are due; the measurements of these sessions, and the seconds."""
        rig, began_s, sessions = self.rig, time.perf_counter(), 0
        now = rig.clock.now()
        self.mark()
        later = now + timedelta(seconds=QUIET_S)
        while due := rig.read(find_due_sessions, now=later):
            points: list[SessionPoint] = []
            for piece in rig.read(session_pieces, [stale.session for stale in due]):
                points += rig.read(points_of_piece, piece)
            rig.write(bind_tx(store_points, now=later), due, points)
            sessions += len(due)
        return sessions * self.size, time.perf_counter() - began_s

    def mark(self) -> None:
        """Mark the sessions of all measurements, as the worker does."""
        now = self.rig.clock.now()
        while self.rig.read(has_unmarked):
            self.rig.write(bind_tx(mark_measured, now=now), limit=MARK_AT_ONCE)

    def write(self, service: Callable[[Connection], None]) -> None:
        """Write past the rules of foreign keys: jobs and attempts of copies do not matter here."""
        engine = self.rig.database.engine
        options: dict[str, object] = {"farm_writes": True}
        if engine.dialect.name != "sqlite":
            # Millions of rows would have more predicate locks than the server has room for.
            options["isolation_level"] = "READ COMMITTED"
        with engine.connect().execution_options(**options) as connection:
            with connection.begin():
                _ignore_foreign_keys(connection)
                service(connection)
            if connection.dialect.name != "sqlite":
                connection.exec_driver_sql("ANALYZE")
                connection.commit()


def _prepare_copies(raw: Any, _: object) -> None:
    """Let an SQLite connection copy: without foreign keys, and with the pages of the indexes in memory."""
    raw.execute("PRAGMA foreign_keys=OFF")
    raw.execute("PRAGMA synchronous=OFF")
    raw.execute(f"PRAGMA cache_size=-{_CACHE_KB}")


def _ignore_foreign_keys(connection: Connection) -> None:
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")


def copy_rows(
    connection: Connection, table: sa.Table, source: str, where: str, changes: Mapping[str, str]
) -> None:
    names = ", ".join(column.name for column in table.columns)
    values = ", ".join(changes.get(column.name, f"t.{column.name}") for column in table.columns)
    sql = f"INSERT INTO {table.name} ({names}) SELECT {values} FROM {table.name} t, {source} WHERE {where}"
    connection.exec_driver_sql(sql)


def numbers(name: str, first: int, last: int) -> str:
    """Return a table of the whole numbers from one to before another."""
    return (
        f"(WITH RECURSIVE {name}_numbers(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM {name}_numbers"
        f" WHERE n + 1 < {last}) SELECT n FROM {name}_numbers) {name}"
    )


def _copy_devices(connection: Connection, *, devices: int) -> None:
    if devices < 2:
        return
    source = numbers("d", 1, devices)
    name = "'phone-' || d.n"
    copy_rows(
        connection,
        tables.devices,
        source,
        "t.device_id = 'phone-0'",
        {"device_id": name, "serial": name, "label": "NULL"},
    )
    count = connection.exec_driver_sql("SELECT MAX(series_id) FROM series").scalar_one()
    copy_rows(
        connection,
        tables.series,
        source,
        "t.device_id = 'phone-0'",
        {
            "series_id": f"t.series_id + d.n * {count}",
            "series_digest": "t.series_digest || d.n",
            "device_id": name,
        },
    )


def _copy_sessions(connection: Connection, *, first: int, last: int, devices: int, cells: int) -> None:
    day = 86_400_000_000
    only_first = "t.matrix_id = 1"
    if last > first:
        copy_rows(
            connection,
            tables.matrices,
            numbers("m", first, last),
            only_first,
            {
                "matrix_id": "1 + m.n",
                "created_at": f"t.created_at + m.n * {day}",
                "name": "'nightly ' || m.n",
                "request_key": "NULL",
            },
        )
    source = f"{numbers('m', 0, last)}, {numbers('d', 0, devices)}"
    # The first matrix is there on the first device, and what was copied before on all.
    is_new = f"(m.n >= {first} OR ({first} = 1 AND m.n = 0 AND d.n > 0))"
    # 32 bits are too few for what is computed with it.
    session = f"(CAST(m.n AS BIGINT) * {devices} + d.n)"
    copy_rows(
        connection,
        tables.cells,
        source,
        f"{only_first} AND t.device_id = 'phone-0' AND {is_new}",
        {
            "cell_id": f"t.cell_id + {session} * {cells}",
            "matrix_id": "1 + m.n",
            "cell_index": f"t.cell_index + d.n * {cells}",
            "baseline_index": f"t.baseline_index + d.n * {cells}",
            "device_id": "'phone-' || d.n",
        },
    )
    size = connection.exec_driver_sql("SELECT MAX(measurement_id) FROM measurements").scalar_one()
    size = size if first == 1 else size // (first * devices)
    number = f"{session} * {size}"
    # One factor for all rounds of a cell, so that points of copies are those of their measurements.
    noise = "(1 + 0.001 * mod({cell_id} * 7919 + " + session + " * 104729, 20))"
    own = connection.exec_driver_sql("SELECT COUNT(*) FROM series WHERE device_id = 'phone-0'").scalar_one()
    copy_rows(
        connection,
        tables.measurements,
        source,
        f"t.cell_id <= {cells} AND {is_new}",
        {
            "measurement_id": f"t.measurement_id + {number}",
            "job_id": f"t.job_id + {number}",
            "attempt_id": f"t.attempt_id + {number}",
            "cell_id": f"t.cell_id + {session} * {cells}",
            "series_id": f"t.series_id + d.n * {own}",
            "value_ns": f"t.value_ns * {noise.format(cell_id='t.cell_id')}",
            "measured_at": f"t.measured_at + m.n * {day}",
        },
    )
    if first > 1:
        connection.execute(tables.points.update().where(sa.text("newest")).values(newest=False))
    else:
        connection.execute(tables.points.update().values(newest=last == 1))
    copy_rows(
        connection,
        tables.points,
        source,
        f"{only_first} AND t.device_id = 'phone-0' AND {is_new}",
        {
            "cell_id": f"t.cell_id + {session} * {cells}",
            "matrix_id": "1 + m.n",
            "device_id": "'phone-' || d.n",
            "series_id": f"t.series_id + d.n * {own}",
            "baseline_series_id": f"t.baseline_series_id + d.n * {own}",
            "time_ns": f"t.time_ns * {noise.format(cell_id='t.cell_id')}",
            # The baseline is the first cell.
            "baseline_ns": f"t.baseline_ns * {noise.format(cell_id=1)}",
            "began_at": f"t.began_at + m.n * {day}",
            "ended_at": f"t.ended_at + m.n * {day}",
            "newest": f"m.n = {last - 1}",
        },
    )
    newest = sa.select(sa.func.max(tables.measurements.c.measurement_id)).scalar_subquery()
    connection.execute(tables.point_progress.update().values(measurement_id=newest))


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
        "the same, found by its label": lambda: rig.read(list_histories, device="phone-0", variant=candidate),
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
    for start in range(0, len(rows), _BATCH):
        rig.write(_insert, rows[start : start + _BATCH])
    inserted_s = time.perf_counter() - began_s
    history.mark()
    marked_s = time.perf_counter() - began_s
    history.compute()
    return len(rows) / inserted_s, len(rows) / marked_s, len(rows) / (time.perf_counter() - began_s)


def _insert(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    _ignore_foreign_keys(connection)
    connection.execute(tables.measurements.insert(), [dict(row) for row in rows])


def _take_measurements(rig: FarmRig, *, limit: int) -> list[Mapping[str, object]]:
    """Remove the newest measurements, to insert them again."""
    own = tables.measurements

    def take(connection: Connection) -> list[Mapping[str, object]]:
        _ignore_foreign_keys(connection)
        newest = sa.select(own).order_by(own.c.measurement_id.desc()).limit(limit)
        rows = [dict(row) for row in connection.execute(newest).mappings()]
        last = rows[-1]["measurement_id"]
        connection.execute(own.delete().where(own.c.measurement_id >= last))
        connection.execute(tables.point_progress.update().values(measurement_id=last - 1))
        return rows[::-1]

    return rig.write(take)


def _beside_duckdb_ms(by_duckdb: Callable[[], object], ask: Callable[[], object]) -> tuple[float, float]:
    """Return the times of the latest speedup over all devices by DuckDB and by the farm, in alternation."""
    parquet, own = [], []
    for _ in range(_TIMES):
        parquet.append(_p50_ms(by_duckdb, 1))
        own.append(_p50_ms(ask, 1))
    return median(parquet), median(own)


def _measure(name: str, url: str | None, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rig = FarmRig(Path(folder), url)
        try:
            history = History(rig, devices=options.devices, cells=options.cells)
            half = max(1, options.matrices // 2)
            history.grow(half)
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
                ask = partial(_over_all_devices, history)
                check_same(ask(), by_duckdb())
                parquet_ms, own_ms = _beside_duckdb_ms(by_duckdb, ask)
                title = "latest speedup by DuckDB"
                ratio = f"{parquet_ms / own_ms:5.1f} x that of points, {own_ms:.2f} ms, in alternation"
                print(f"  {title:34}{parquet_ms:8.2f} ms  {ratio}")
            plain, marked, with_points = _ingest(history, options.ingest)
            print(
                f"  inserts in batches of {_BATCH}: {plain:,.0f}/s, with marks {marked:,.0f}/s,"
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
