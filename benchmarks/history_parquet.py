"""The latest speedup over all devices by DuckDB, from all measurements of a history in one Parquet file.

The file is sorted by what is measured, its device and its time: the order that suits this question.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from farm.core.base.microseconds import to_microseconds
from farm.core.runs.stats import t_quantile
from farm.wire.documents.results.history import GroupSpeedupView
from tests.support.farm.service_fixture import FarmRig

#: Measurements that are held at once while the file is written.
_ROWS = 200_000
_NAMES = ("variant", "device", "session", "round", "block", "measured_at", "value", "quality")


def open_parquet(rig: FarmRig, folder: Path, *, cells: int) -> Callable[[], tuple[Any, ...]] | None:
    """Write the measurements as Parquet; return the question to DuckDB, or None without the extra `bench`.

    Args:
        rig: the farm.
        folder: for the file.
        cells: of a device: the second one is compared with the first.
    """
    try:
        import duckdb
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    rows_sql = (
        f"SELECT mod(c.cell_index, {cells}), c.device_id, c.matrix_id, m.round, m.block, m.measured_at,"
        " m.value_ns, m.quality FROM measurements m JOIN cells c ON c.cell_id = m.cell_id"
    )
    unsorted, path = folder / "unsorted.parquet", folder / "measurements.parquet"
    writer = None
    last = rig.rows("SELECT MAX(measurement_id) AS last FROM measurements")[0]["last"]
    with rig.database.engine.connect() as database:
        for first in range(0, last + 1, _ROWS):
            of_page = f"{rows_sql} WHERE m.measurement_id BETWEEN {first} AND {first + _ROWS - 1}"
            if rows := database.exec_driver_sql(of_page).all():
                table = pyarrow.table(dict(zip(_NAMES, map(list, zip(*rows, strict=True)), strict=True)))
                writer = writer or pyarrow.parquet.ParquetWriter(unsorted, table.schema)
                writer.write_table(table)
    assert writer is not None
    writer.close()
    connection = duckdb.connect()
    in_order = f"SELECT * FROM '{unsorted}' ORDER BY variant, device, measured_at"
    connection.execute(f"COPY ({in_order}) TO '{path}' (FORMAT parquet)")
    # The numbers of one pair that is known: not which pairs there are, what both sides run, and how many
    # devices measured the model at all. As in an export, what does not count is in the file, too.
    # The rows of the newest sessions are chosen before they are joined: the quickest of six ways to ask.
    counts = "quality IN ('valid', 'noisy')"
    query = f"""
        WITH last AS (
            SELECT device, MAX(session) AS session FROM '{path}' WHERE variant = 1 AND {counts}
            GROUP BY device
        ),
        own AS (SELECT * FROM '{path}' JOIN last USING (device, session) WHERE variant = 1 AND {counts}),
        its AS (SELECT * FROM '{path}' JOIN last USING (device, session) WHERE variant = 0 AND {counts}),
        of_device AS (
            SELECT AVG(LN(its.value)) AS base, AVG(LN(own.value)) AS time, MAX(own.measured_at) AS until
            FROM own JOIN its USING (device, session, round, block)
            GROUP BY own.device
        )
        SELECT COUNT(*), AVG(base - time), STDDEV(base - time), MIN(base - time), MAX(base - time),
            AVG(base), AVG(time), MAX(until)
        FROM of_device
    """

    def ask() -> tuple[Any, ...]:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row

    return ask


def check_same(view: GroupSpeedupView, row: tuple[Any, ...]) -> None:
    """Raise AssertionError unless DuckDB's answer is the farm's, but for the last digits of their sums."""
    devices, mean, deviation, low, high, baseline, time, at_us = row
    assert (devices, at_us) == (view.devices, to_microseconds(view.measured_until)), (row, view)
    logs = (mean, low, high, baseline, time)
    own = (view.speedup, view.low, view.high, view.baseline_ns, view.candidate_ns)
    pairs = list(zip(logs, map(math.log, own), strict=True))
    if view.ci_low is not None and view.ci_high is not None:
        half_width = t_quantile(0.975, devices - 1) * deviation / math.sqrt(devices)
        pairs.append((half_width, math.log(view.ci_high / view.ci_low) / 2))
    assert all(math.isclose(its, mine, rel_tol=1e-9, abs_tol=1e-12) for its, mine in pairs), pairs
