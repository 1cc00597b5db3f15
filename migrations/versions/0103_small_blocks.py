"""Blocks of a baseline with some of its candidates, the place of each job in them, and the order of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None

_ONE_JOB = "uq_jobs_cell_id_round_block_repeat"
_ONE_JOB_BEFORE = "uq_jobs_cell_id_round_repeat"
#: Repeats of a block that 0102 counts at most, the first start included.
_STARTS_OF_A_BLOCK = 3
_ALARM_KIND = "ck_alarms_kind_known"
_ALARM_KINDS = (
    "device_silent",
    "recovery_failed",
    "device_unauthorized",
    "identity_clash",
    "report_implausible",
    "reference_drift",
    "placement_changed",
    "cell_silent",
    "host_incident",
    "clock_stepped",
)


def upgrade() -> None:
    with op.batch_alter_table("matrices", schema=None) as batch_op:
        batch_op.add_column(sa.Column("block_candidates", sa.Integer(), nullable=True))
    # SQLite copies the table, and loses the order of an index on the way.
    _drop_queue_index()
    with op.batch_alter_table("jobs", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.add_column(sa.Column("block", sa.Integer(), server_default="0", nullable=False))
        batch_op.add_column(sa.Column("place", sa.Integer(), nullable=True))
        batch_op.drop_constraint(op.f(_ONE_JOB_BEFORE), type_="unique")
        batch_op.create_unique_constraint(op.f(_ONE_JOB), ["cell_id", "round", "block", "repeat"])
    _create_queue_index()
    with op.batch_alter_table("measurements", schema=None) as batch_op:
        batch_op.add_column(sa.Column("block", sa.Integer(), server_default="0", nullable=False))
        batch_op.add_column(sa.Column("boot_id", sa.Text()))
        batch_op.add_column(sa.Column("start_uptime_s", sa.Double()))
        batch_op.add_column(sa.Column("duration_s", sa.Double()))
    _replace_alarm_kinds((*_ALARM_KINDS, "order_shows"))


def downgrade() -> None:
    # A cell had one job for a round and repeat: the starts of a baseline in one round become repeats, and so
    # do those of their candidates, so that the same pairs are formed.
    for table in ("jobs", "measurements"):
        op.execute(f"UPDATE {table} SET repeat = repeat + {_STARTS_OF_A_BLOCK} * block WHERE block > 0")
    # What is not queued yet was planned in blocks, which the older farm would count in another order.
    in_blocks = "matrix_id IN (SELECT matrix_id FROM matrices WHERE block_candidates IS NOT NULL)"
    now = "(SELECT max(created_at) FROM jobs)"
    op.execute(f"UPDATE lazy_expansions SET cancelled_at = {now} WHERE cancelled_at IS NULL AND {in_blocks}")
    op.execute(f"DELETE FROM job_templates WHERE {in_blocks}")
    op.execute(f"UPDATE round_growths SET finished_at = {now} WHERE finished_at IS NULL AND {in_blocks}")
    with op.batch_alter_table("measurements", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        for name in ("duration_s", "start_uptime_s", "boot_id", "block"):
            batch_op.drop_column(name)
    # The older schema has no word for it.
    op.execute("DELETE FROM alarms WHERE kind = 'order_shows'")
    _replace_alarm_kinds(_ALARM_KINDS)
    _drop_queue_index()
    with op.batch_alter_table("jobs", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f(_ONE_JOB), type_="unique")
        batch_op.create_unique_constraint(op.f(_ONE_JOB_BEFORE), ["cell_id", "round", "repeat"])
        batch_op.drop_column("place")
        batch_op.drop_column("block")
    _create_queue_index()
    with op.batch_alter_table("matrices", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_column("block_candidates")


def _drop_queue_index() -> None:
    queued = sa.text("state = 'queued'")
    op.drop_index("ix_jobs_queue", table_name="jobs", sqlite_where=queued, postgresql_where=queued)


def _create_queue_index() -> None:
    op.create_index(
        "ix_jobs_queue",
        "jobs",
        ["device_id", sa.literal_column("priority DESC"), "virtual_time", "job_id"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )


def _replace_alarm_kinds(kinds: tuple[str, ...]) -> None:
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    with op.batch_alter_table("alarms", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f(_ALARM_KIND), type_="check")
        batch_op.create_check_constraint(op.f(_ALARM_KIND), f"kind IN ({listed})")
