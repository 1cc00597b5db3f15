"""Changes in the history of series: what was found, and its evidence; sessions of browsers."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_CAUSES = "cause IN ('file', 'program', 'os', 'device', 'drift', 'method')"
_STATES = "state IN ('new', 'acknowledged', 'expected', 'fixed', 'invalid', 'infrastructure')"
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
    "order_shows",
)
_OUTCOMES = "'running', 'confirmed', 'not_confirmed', 'undecided', 'not_measured', 'impossible'"
_NEWEST_KEY = ("slot", "baseline_slot", "device_id")
_NEWEST_VALUES = ("matrix_id", "cell_id", "time_ns", "baseline_ns", "ended_at", "rounds", "replica", "newest")
_NEWEST_COVERING = (*_NEWEST_KEY, *_NEWEST_VALUES)
_NEWEST_COMPARED = "newest AND replica = 1 AND rounds > 0 AND baseline_slot IS NOT NULL"

#: For analysts, read only: docs/sql-views.md. A migration that rebuilds one of their tables on SQLite drops them
#: before, and creates them again.
_VIEWS = {
    "analysis_devices": """
        SELECT d.device_id, d.label, d.serial, d.host_id AS host,
            f.facts ->> 'device_model' AS device_model, f.facts ->> 'manufacturer' AS manufacturer,
            f.facts ->> 'soc' AS soc, f.facts ->> 'android' AS android,
            f.facts ->> 'build_fingerprint' AS build_fingerprint,
            d.presence, d.health, d.admin, AT(d.seen_at) AS seen_at
        FROM devices d LEFT JOIN device_facts f ON f.facts_id = d.facts_id
    """,
    "analysis_measurements": """
        SELECT m.measurement_id, c.matrix_id, m.cell_id, c.cell_index, c.baseline_index, c.replica, c.label,
            m.job_id, m.attempt_id, m.series_id, c.device_id, d.label AS device_label,
            f.facts ->> 'device_model' AS device_model, f.facts ->> 'soc' AS soc,
            f.facts ->> 'android' AS android, f.facts ->> 'build_fingerprint' AS build_fingerprint,
            s.model, v.name AS variant, s.recipe ->> 'precision' AS "precision", s.recipe ->> 'format' AS format,
            m.variant_digest, s.backend, s.settings, s.harness, m.program_digest,
            m.round, m.block, m.repeat, m.quality, m.quality_reasons, m.kind, m.sample_count,
            m.value_ns, m.mean_ns, m.min_ns, m.max_ns, m.p90_ns, m.scatter, m.clock_step_ns,
            m.actual_backend, m.accelerator, m.proof, m.metrics, m.control_level, m.cpu_s, m.duration_s,
            m.start_skin_c, m.start_battery_c, m.boot_id, m.start_uptime_s, m.parser_version, m.retracted_by,
            AT(m.measured_at) AS measured_at
        FROM measurements m
        JOIN cells c ON c.cell_id = m.cell_id
        JOIN series s ON s.series_id = m.series_id
        JOIN devices d ON d.device_id = c.device_id
        LEFT JOIN variants v ON v.variant_id = c.variant_id
        LEFT JOIN device_facts f ON f.facts_id = m.facts_id
        WHERE m.accepted
    """,
    "analysis_samples": """
        SELECT m.measurement_id, c.device_id, m.sample_count, m.samples AS packed_samples_ns
        FROM measurements m JOIN cells c ON c.cell_id = m.cell_id
        WHERE m.accepted AND m.samples IS NOT NULL
    """,
    "analysis_speedups": """
        SELECT p.matrix_id, p.cell_id, p.device_id, d.label AS device_label, p.series_id, p.baseline_series_id,
            s.model, s.recipe ->> 'precision' AS "precision", s.recipe ->> 'format' AS format, s.backend, s.settings,
            b.recipe ->> 'precision' AS baseline_precision, b.recipe ->> 'format' AS baseline_format,
            b.backend AS baseline_backend, b.settings AS baseline_settings, s.harness,
            p.baseline_ns / p.time_ns AS speedup, p.se_speedup AS log_error, p.rounds, p.left_out,
            p.baseline_ns, p.time_ns AS candidate_ns, p.replica > 1 AS aa, p.newest,
            AT(p.ended_at) AS measured_until
        FROM points p
        JOIN devices d ON d.device_id = p.device_id
        JOIN series s ON s.series_id = p.series_id
        JOIN series b ON b.series_id = p.baseline_series_id
    """,
}


def upgrade() -> None:
    _replace_alarm_kinds((*_ALARM_KINDS, "regression"))
    _create_changes()
    _create_confirmations()
    _create_page_sessions()
    _create_name_trigrams()
    _replace_newest_index(_NEWEST_COVERING, _NEWEST_COMPARED)
    superseded = sa.text("superseded_at IS NOT NULL")
    op.create_index(
        "ix_measurements_superseded_at",
        "measurements",
        ["superseded_at"],
        unique=False,
        sqlite_where=superseded,
        postgresql_where=superseded,
    )
    _create_views()


def _create_changes() -> None:
    op.create_table(
        "changes",
        sa.Column("change_id", _BIG_ID, nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("scope", sa.JSON(), nullable=False),
        sa.Column("delta", sa.Double(), nullable=False),
        sa.Column("se_delta", sa.Double(), nullable=False),
        sa.Column("is_slower", sa.Boolean(), nullable=False),
        sa.Column("before_at", sa.BigInteger(), nullable=False),
        sa.Column("since_at", sa.BigInteger(), nullable=False),
        sa.Column("told_at", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("of_devices", sa.Integer(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("first_cell_id", _BIG_ID, nullable=False),
        sa.Column("gone_at", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.CheckConstraint(_CAUSES, name=op.f("ck_changes_cause_known")),
        sa.CheckConstraint(_STATES, name=op.f("ck_changes_state_known")),
        sa.CheckConstraint("is_slower = (delta > 0)", name=op.f("ck_changes_direction_of_size")),
        sa.CheckConstraint("before_at <= since_at", name=op.f("ck_changes_levels_in_order")),
        sa.CheckConstraint("devices <= of_devices", name=op.f("ck_changes_devices_of_all")),
        sa.ForeignKeyConstraint(["first_cell_id"], ["cells.cell_id"], name=op.f("fk_changes_first_cell_id")),
        sa.PrimaryKeyConstraint("change_id", name=op.f("pk_changes")),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_changes_first_cell", "changes", ["first_cell_id", "cause", "is_slower"], unique=True)
    op.create_index("ix_changes_told_at", "changes", ["told_at", "change_id"], unique=False)
    op.create_index("ix_changes_since_at", "changes", ["since_at"], unique=False)
    op.create_table(
        "changed_series",
        sa.Column("change_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("cell_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("series_id", _BIG_ID, nullable=False),
        sa.Column("baseline_series_id", _BIG_ID, nullable=True),
        sa.Column("delta", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["baseline_series_id"], ["series.series_id"], name=op.f("fk_changed_series_baseline_series_id")
        ),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.cell_id"], name=op.f("fk_changed_series_cell_id")),
        sa.ForeignKeyConstraint(
            ["change_id"], ["changes.change_id"], name=op.f("fk_changed_series_change_id")
        ),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.series_id"], name=op.f("fk_changed_series_series_id")
        ),
        sa.PrimaryKeyConstraint("change_id", "cell_id", name=op.f("pk_changed_series")),
    )
    op.create_index("ix_changed_series_series", "changed_series", ["series_id", "change_id"], unique=False)


def _create_confirmations() -> None:
    op.create_table(
        "confirmations",
        sa.Column("change_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("matrix_id", _BIG_ID, nullable=True),
        sa.Column("device_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("delta", sa.Double(), nullable=True),
        sa.Column("half_width", sa.Double(), nullable=True),
        sa.CheckConstraint(f"outcome IN ({_OUTCOMES})", name=op.f("ck_confirmations_outcome_known")),
        sa.CheckConstraint(
            "(matrix_id IS NULL) = (outcome = 'impossible')", name=op.f("ck_confirmations_matrix_of_measured")
        ),
        sa.ForeignKeyConstraint(
            ["change_id"], ["changes.change_id"], name=op.f("fk_confirmations_change_id")
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name=op.f("fk_confirmations_device_id")
        ),
        sa.ForeignKeyConstraint(
            ["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_confirmations_matrix_id")
        ),
        sa.PrimaryKeyConstraint("change_id", name=op.f("pk_confirmations")),
    )
    running = sa.text("outcome = 'running'")
    op.create_index(
        "ix_confirmations_running",
        "confirmations",
        ["change_id"],
        unique=False,
        sqlite_where=running,
        postgresql_where=running,
    )


def _create_page_sessions() -> None:
    op.create_table(
        "page_sessions",
        sa.Column("session_hash", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["token_hash"], ["access_tokens.token_hash"], name=op.f("fk_page_sessions_token_hash")
        ),
        sa.PrimaryKeyConstraint("session_hash", name=op.f("pk_page_sessions")),
    )
    op.create_index("ix_page_sessions_expires_at", "page_sessions", ["expires_at"], unique=False)


def _create_name_trigrams() -> None:
    op.create_table(
        "name_trigrams",
        sa.Column("trigram", sa.Text(), nullable=False),
        sa.Column("matrix_id", _BIG_ID, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_name_trigrams_matrix_id")
        ),
        sa.PrimaryKeyConstraint("trigram", "matrix_id", name=op.f("pk_name_trigrams")),
        sqlite_with_rowid=False,
    )


def _create_views() -> None:
    for name, query in _VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {_time_columns(query)}")


def _time_columns(query: str) -> str:
    """Write `AT(column)` as a time: ISO 8601 in UTC on SQLite, a timestamp on PostgreSQL."""
    of_dialect = {
        "sqlite": r"strftime('%Y-%m-%dT%H:%M:%fZ', \1 / 1e6, 'unixepoch')",
        "postgresql": r"to_timestamp(\1 / 1e6)",
    }
    return re.sub(r"AT\(([a-z_.]+)\)", of_dialect[op.get_bind().dialect.name], query)


def downgrade() -> None:
    for name in reversed(_VIEWS):
        op.execute(f"DROP VIEW {name}")
    op.drop_table("name_trigrams")
    op.drop_table("page_sessions")
    op.drop_table("confirmations")
    op.drop_index("ix_measurements_superseded_at", table_name="measurements")
    _replace_newest_index(_NEWEST_KEY, "newest")
    op.drop_table("changed_series")
    op.drop_table("changes")
    # The older schema has no word for it.
    op.execute("DELETE FROM alarms WHERE kind = 'regression'")
    _replace_alarm_kinds(_ALARM_KINDS)


def _replace_newest_index(columns: tuple[str, ...], condition: str) -> None:
    name = "ix_points_newest_of_slot"
    op.drop_index(name, table_name="points")
    which = sa.text(condition)
    op.create_index(name, "points", list(columns), unique=False, sqlite_where=which, postgresql_where=which)


def _replace_alarm_kinds(kinds: tuple[str, ...]) -> None:
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    with op.batch_alter_table("alarms", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f(_ALARM_KIND), type_="check")
        batch_op.create_check_constraint(op.f(_ALARM_KIND), f"kind IN ({listed})")
