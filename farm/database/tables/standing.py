"""Tables of standing matrices: what the farm keeps measuring, and what of it was queued."""

import sqlalchemy as sa

from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata, where

#: Matrices that the farm keeps measuring: on a schedule, and for each new version of what cells are made of.
standing_matrices = sa.Table(
    "standing_matrices",
    metadata,
    sa.Column("standing_id", BigId, primary_key=True),
    #: Of its matrices, too.
    sa.Column("name", sa.Text, nullable=False),
    #: farm.core.matrices.standing.
    sa.Column("spec", sa.JSON, nullable=False),
    sa.Column("submitted_by", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    #: The time at which a person replaced its spec.
    sa.Column("changed_at", UtcTime, nullable=False),
    sa.Column("ended_at", UtcTime),
    #: The time of its next session by the schedule.
    sa.Column("next_due_at", UtcTime),
    #: The reason why it could not be expanded at the last look.
    sa.Column("problem", sa.Text),
    **NO_NUMBER_REUSE,
)
# One of a name stands at a time.
sa.Index("uq_standing_matrices_name", standing_matrices.c.name, unique=True, **where("ended_at IS NULL"))

#: The cells of standing matrices that were queued, at their versions: the last matrix that measures each.
standing_cells = sa.Table(
    "standing_cells",
    metadata,
    sa.Column(
        "standing_id",
        BigId,
        sa.ForeignKey("standing_matrices.standing_id"),
        primary_key=True,
        autoincrement=False,
    ),
    #: farm.core.matrices.standing: no cell is queued twice for the same versions but by the schedule.
    sa.Column("version_digest", sa.Text, primary_key=True),
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), nullable=False),
    sa.Column("cell_index", sa.Integer, nullable=False),
)
