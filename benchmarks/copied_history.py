"""A long history for benchmarks: one measured session with its points, copied by SQL."""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.api.agents.point_worker import MARK_AT_ONCE
from farm.core.results.history.session_point import SessionPoint
from farm.database import tables
from farm.database.transaction import bind_tx
from farm.services.results.history.session_points import (
    QUIET_S,
    find_due_sessions,
    points_of_piece,
    session_pieces,
    store_points,
)
from farm.store.matrices.search import index_names
from farm.store.results.history.stale_points import has_unmarked, mark_measured

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.farm.service_fixture import FarmRig, good_evidence, plan_of

ROUNDS = 5
BATCH = 100
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
        #: Those that are there on all devices: the first one is on one device until the history grows.
        self._matrices = 0
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
        """Copy the first matrix until there are so many, on all devices.

        Args:
            matrices: more than there are.
        """
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
        with engine.connect().execution_options(**options) as connection, connection.begin():
            ignore_foreign_keys(connection)
            service(connection)
        if engine.dialect.name != "sqlite":
            # As a farm's server has done of rows that are older than a minute: an index alone answers then.
            with closing(engine.raw_connection()) as raw:
                driver: Any = raw.driver_connection
                driver.autocommit = True
                driver.execute("VACUUM ANALYZE")


def _prepare_copies(raw: Any, _: object) -> None:
    """Let an SQLite connection copy: without foreign keys, and with the pages of the indexes in memory."""
    raw.execute("PRAGMA foreign_keys=OFF")
    raw.execute("PRAGMA synchronous=OFF")
    raw.execute(f"PRAGMA cache_size=-{_CACHE_KB}")


def ignore_foreign_keys(connection: Connection) -> None:
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
    if last > max(first, 1):
        copy_rows(
            connection,
            tables.matrices,
            numbers("m", max(first, 1), last),
            only_first,
            {
                "matrix_id": "1 + m.n",
                "created_at": f"t.created_at + m.n * {day}",
                "name": "'nightly ' || m.n",
                "request_key": "NULL",
            },
        )
    source = f"{numbers('m', 0, last)}, {numbers('d', 0, devices)}"
    is_new = f"m.n >= {first} AND (m.n > 0 OR d.n > 0)"
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
    size //= max(1, first * devices)
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
    if first > 0:
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
