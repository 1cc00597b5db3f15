"""Roles, incidents of hosts, farm processes that agree: what a farm needs that a team shares."""

import secrets
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ROLES = "role IN ('viewer', 'submitter', 'operator', 'admin', 'agent')"

QUEUE: list[str | sa.ColumnClause[Any]] = ["device_id", sa.literal_column("priority DESC"), "job_id"]
EVENT_INDEXES = {
    "ix_events_actor": ["actor", "event_id"],
    "ix_events_kind": ["kind", "event_id"],
    "ix_events_at": ["at"],
}


def upgrade() -> None:
    _access_tokens()
    _incidents()
    _control()
    op.add_column("matrices", sa.Column("submitted_by", sa.Text()))
    # In the column itself: both databases can add that, and take it away again.
    op.execute(
        "ALTER TABLE hosts ADD COLUMN max_runs INTEGER CONSTRAINT ck_hosts_max_runs_some CHECK (max_runs > 0)"
    )
    op.add_column("attempts", sa.Column("waiting_for", sa.Text()))
    op.add_column("jobs", sa.Column("turn", sa.BigInteger(), nullable=False, server_default="0"))
    for name, columns in EVENT_INDEXES.items():
        op.create_index(name, "events", columns)
    _numbers_are_given_once()
    # A table of SQLite's that is made anew is given its indexes as they were read, and those lose their DESC.
    _order_queues([*QUEUE[:2], "turn", *QUEUE[2:]])


def _numbers_are_given_once() -> None:
    """PostgreSQL's sequences never go back; SQLite's do, unless told so when the table is made."""
    if op.get_bind().dialect.name != "sqlite":
        return
    for table in ("sessions", "errands", "matrices", "jobs", "attempts", "measurements", "events"):
        with op.batch_alter_table(table, recreate="always", table_kwargs={"sqlite_autoincrement": True}):
            pass


def _order_queues(columns: list[str | sa.ColumnClause[Any]]) -> None:
    op.drop_index("ix_jobs_queue", "jobs")
    is_queued = sa.text("state = 'queued'")
    op.create_index("ix_jobs_queue", "jobs", columns, sqlite_where=is_queued, postgresql_where=is_queued)


def _access_tokens() -> None:
    op.create_table(
        "access_tokens",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.CheckConstraint(ROLES, name=op.f("ck_access_tokens_role_known")),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_access_tokens")),
    )


def _incidents() -> None:
    op.create_table(
        "incidents",
        sa.Column("incident_id", BIG_ID, nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_incidents_host_id")),
        sa.PrimaryKeyConstraint("incident_id", name=op.f("pk_incidents")),
        sqlite_autoincrement=True,
    )
    is_open = sa.text("ended_at IS NULL")
    op.create_index(
        "uq_incidents_one_open_per_kind",
        "incidents",
        ["host_id", "kind"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )


def _control() -> None:
    op.create_table(
        "duties",
        sa.Column("duty", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("held_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("duty", name=op.f("pk_duties")),
    )
    epochs = op.create_table(
        "database_epochs",
        sa.Column("epoch", sa.Text(), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("epoch", name=op.f("pk_database_epochs")),
    )
    # No clock here: whatever was before, this history has no beginning that anybody noted.
    op.bulk_insert(epochs, [{"epoch": secrets.token_hex(8), "began_at": 0, "cause": "created"}])


def downgrade() -> None:
    op.drop_column("hosts", "max_runs")
    _order_queues(QUEUE)
    op.drop_column("jobs", "turn")
    for name in EVENT_INDEXES:
        op.drop_index(name, table_name="events")
    with op.batch_alter_table("attempts") as batch:
        batch.drop_column("waiting_for")
    with op.batch_alter_table("matrices") as batch:
        batch.drop_column("submitted_by")
    op.drop_table("database_epochs")
    op.drop_table("duties")
    op.drop_index("uq_incidents_one_open_per_kind", table_name="incidents")
    op.drop_table("incidents")
    op.drop_table("access_tokens")
