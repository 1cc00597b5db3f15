"""Changes that were found in the points of series, and their evidence."""

import sqlalchemy as sa

from farm.core.results.history.confirmation import ConfirmationOutcome
from farm.core.results.history.recorded_change import ChangeCause, ChangeState
from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata, one_of, where

changes = sa.Table(
    "changes",
    metadata,
    sa.Column("change_id", BigId, primary_key=True),
    sa.Column("cause", sa.Text, nullable=False),
    #: Of what nothing explains: it soon went back, or is how an earlier one did.
    sa.Column("is_passing", sa.Boolean, nullable=False),
    #: What the changed series have in common, by name: model, variant, device, program, os.
    sa.Column("scope", sa.JSON, nullable=False),
    #: The change of the logarithm of time, and its standard error.
    sa.Column("delta", sa.Double, nullable=False),
    sa.Column("se_delta", sa.Double, nullable=False),
    sa.Column("is_slower", sa.Boolean, nullable=False),
    #: The last session of the old level, and the first one of the new level, by the end of both.
    sa.Column("before_at", UtcTime, nullable=False),
    sa.Column("since_at", UtcTime, nullable=False),
    #: The time by which it could be told, and at which the farm recorded it.
    sa.Column("told_at", UtcTime, nullable=False),
    sa.Column("recorded_at", UtcTime, nullable=False),
    #: Devices that show it, of those that measured the same on both sides.
    sa.Column("devices", sa.Integer, nullable=False),
    sa.Column("of_devices", sa.Integer, nullable=False),
    #: What has another version since: a list of part, old, new.
    sa.Column("versions", sa.JSON, nullable=False),
    #: The first cell of the new level in the first of its series, when it was recorded.
    sa.Column("first_cell_id", BigId, sa.ForeignKey("cells.cell_id"), nullable=False),
    #: The time since which the points show it no more: measurements were retracted or parsed again.
    sa.Column("gone_at", UtcTime),
    sa.Column("state", sa.Text, nullable=False),
    one_of("cause", ChangeCause),
    one_of("state", ChangeState),
    # What is noise follows from this and from its confirmation.
    sa.CheckConstraint("cause <> 'noise'", name="noise_follows"),
    # What is explained does not pass.
    sa.CheckConstraint("NOT is_passing OR cause = 'unknown'", name="passing_unexplained"),
    # Its direction is that of its size.
    sa.CheckConstraint("is_slower = (delta > 0)", name="direction_of_size"),
    # The old level ends before the new one begins.
    sa.CheckConstraint("before_at <= since_at", name="levels_in_order"),
    # Of the devices that measured it, so many at most show it.
    sa.CheckConstraint("devices <= of_devices", name="devices_of_all"),
    **NO_NUMBER_REUSE,
)
# A change is recorded once, by whichever process finds it.
sa.Index(
    "uq_changes_first_cell",
    changes.c.first_cell_id,
    changes.c.cause,
    changes.c.is_slower,
    unique=True,
)
# What was told since a time, the newest first.
sa.Index("ix_changes_told_at", changes.c.told_at, changes.c.change_id)
# Changes that a new detection is compared with.
sa.Index("ix_changes_since_at", changes.c.since_at)

#: The series that show a change.
changed_series = sa.Table(
    "changed_series",
    metadata,
    sa.Column("change_id", BigId, sa.ForeignKey("changes.change_id"), primary_key=True, autoincrement=False),
    #: The first cell of the new level: a series has one for each baseline.
    sa.Column("cell_id", BigId, sa.ForeignKey("cells.cell_id"), primary_key=True, autoincrement=False),
    sa.Column("series_id", BigId, sa.ForeignKey("series.series_id"), nullable=False),
    sa.Column("baseline_series_id", BigId, sa.ForeignKey("series.series_id")),
    #: The change of the logarithm of time of this series; None without a session on both sides.
    sa.Column("delta", sa.Double),
)
# The changes of a series, for its trend and for filters.
sa.Index("ix_changed_series_series", changed_series.c.series_id, changed_series.c.change_id)

#: The old model file against the new one, once for each change of a file.
confirmations = sa.Table(
    "confirmations",
    metadata,
    sa.Column("change_id", BigId, sa.ForeignKey("changes.change_id"), primary_key=True, autoincrement=False),
    sa.Column("outcome", sa.Text, nullable=False),
    #: Without a matrix it is impossible, for the reason.
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id")),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id")),
    sa.Column("reason", sa.Text),
    #: The logarithm of the new file's time over the old one's, and the reach of its interval to each side.
    sa.Column("delta", sa.Double),
    sa.Column("half_width", sa.Double),
    one_of("outcome", ConfirmationOutcome),
    # What is measured is measured by a matrix; else there is a reason.
    sa.CheckConstraint("(matrix_id IS NULL) = (outcome = 'impossible')", name="matrix_of_measured"),
)
# Those whose matrix is not over.
sa.Index("ix_confirmations_running", confirmations.c.change_id, **where("outcome = 'running'"))
