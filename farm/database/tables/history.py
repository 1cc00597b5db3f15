"""History: the points of series, one for each cell that was measured, and what is to be computed of them."""

import sqlalchemy as sa

from farm.database.tables.columns import BigId, UtcTime, metadata, where

#: What a session, that is a matrix on a device, showed of each of its cells: farm.core.results.point. Rows
#: are computed from measurements, by the functions of `farm speedups`, and can be computed again.
points = sa.Table(
    "points",
    metadata,
    sa.Column("cell_id", BigId, sa.ForeignKey("cells.cell_id"), primary_key=True, autoincrement=False),
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), nullable=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    sa.Column("series_id", BigId, sa.ForeignKey("series.series_id"), nullable=False),
    #: The series that it is compared with; None for a cell that is compared with none.
    sa.Column("baseline_series_id", BigId, sa.ForeignKey("series.series_id")),
    #: Above 1 for a duplicate of the baseline (A/A).
    sa.Column("replica", sa.Integer, nullable=False),
    #: What both series have in common on all devices: farm.core.results.series.
    sa.Column("slot", sa.BigInteger, nullable=False),
    sa.Column("baseline_slot", sa.BigInteger),
    #: Rounds that count, and blocks that are left out.
    sa.Column("rounds", sa.Integer, nullable=False),
    sa.Column("left_out", sa.Integer, nullable=False),
    #: Geometric means over the rounds that count, and standard errors of the means of their logarithms, which
    #: two rounds are needed for.
    sa.Column("time_ns", sa.Double),
    sa.Column("se_time", sa.Double),
    sa.Column("baseline_ns", sa.Double),
    sa.Column("se_speedup", sa.Double),
    #: Versions of the device: of the last round that counts.
    sa.Column("facts_id", BigId, sa.ForeignKey("device_facts.facts_id")),
    sa.Column("control_level", sa.Integer, nullable=False),
    #: Of the cell's first and last measurement.
    sa.Column("began_at", UtcTime, nullable=False),
    sa.Column("ended_at", UtcTime, nullable=False),
    #: Whether no later matrix has rounds that count of the same pair of series; of a pair without any such
    #: rounds, whether no matrix is later.
    sa.Column("newest", sa.Boolean, nullable=False),
    # A point without rounds has no time.
    sa.CheckConstraint("(rounds > 0) = (time_ns IS NOT NULL)", name="time_of_rounds"),
    # What is compared has a baseline, and a time of it.
    sa.CheckConstraint(
        "(baseline_series_id IS NULL) = (baseline_slot IS NULL)"
        " AND (baseline_ns IS NOT NULL) = (rounds > 0 AND baseline_slot IS NOT NULL)",
        name="baseline_of_compared",
    ),
)
# The trend of one series; and versions that are pooled.
sa.Index("ix_points_series", points.c.series_id, points.c.matrix_id)
# The points of a session, which are computed together.
sa.Index("ix_points_session", points.c.matrix_id, points.c.device_id)
# The newest point of a pair of series is one, and what `farm speedups` lists by device.
sa.Index(
    "uq_points_newest",
    points.c.device_id,
    points.c.baseline_series_id,
    points.c.series_id,
    points.c.replica,
    unique=True,
    **where("newest"),
)
# The newest points of one comparison over all devices, with all that is read of them: rows of a thousand
# devices lie on a thousand pages, and their entries here beside each other.
sa.Index(
    "ix_points_newest_of_slot",
    points.c.slot,
    points.c.baseline_slot,
    points.c.device_id,
    points.c.matrix_id,
    points.c.cell_id,
    points.c.time_ns,
    points.c.baseline_ns,
    points.c.ended_at,
    # Of the condition: without them, SQLite reads each row to check it again.
    points.c.rounds,
    points.c.replica,
    points.c.newest,
    **where("newest AND replica = 1 AND rounds > 0 AND baseline_slot IS NOT NULL"),
)

#: Sessions whose points are to be computed, or computed again.
stale_points = sa.Table(
    "stale_points",
    metadata,
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), primary_key=True),
    #: Rises with every mark, so that points of what was known at an earlier one do not remove a later one.
    sa.Column("version", sa.BigInteger, nullable=False),
    #: The times of the first and of the last mark since they were computed last.
    sa.Column("marked_at", UtcTime, nullable=False),
    sa.Column("last_marked_at", UtcTime, nullable=False),
)

#: One row: the last measurement whose session is marked, and the last version of a mark.
point_progress = sa.Table(
    "point_progress",
    metadata,
    sa.Column("progress_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("measurement_id", sa.BigInteger, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
    # There is one row.
    sa.CheckConstraint("progress_id = 1", name="one_row"),
)
