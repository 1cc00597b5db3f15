"""The schema of the first release."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "access_tokens",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "role IN ('viewer', 'submitter', 'operator', 'admin', 'agent')",
            name=op.f("ck_access_tokens_role_known"),
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_access_tokens")),
    )
    op.create_table(
        "alarms",
        sa.Column("alarm_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("raised_at", sa.BigInteger(), nullable=False),
        sa.Column("cleared_at", sa.BigInteger(), nullable=True),
        sa.Column("cleared_by", sa.Text(), nullable=True),
        sa.Column("notified_at", sa.BigInteger(), nullable=True),
        sa.Column("notify_attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("notify_again_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('device_silent', 'recovery_failed', 'device_unauthorized', 'identity_clash', 'report_implausible', 'reference_drift', 'placement_changed', 'cell_silent', 'host_incident', 'clock_stepped')",
            name=op.f("ck_alarms_kind_known"),
        ),
        sa.CheckConstraint(
            "(cleared_at IS NULL) = (cleared_by IS NULL)", name=op.f("ck_alarms_cleared_has_actor")
        ),
        sa.PrimaryKeyConstraint("alarm_id", name=op.f("pk_alarms")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("alarms", schema=None) as batch_op:
        batch_op.create_index(
            "uq_alarms_one_open_per_kind",
            ["kind", "subject", "subject_id"],
            unique=True,
            sqlite_where=sa.text("cleared_at IS NULL"),
            postgresql_where=sa.text("cleared_at IS NULL"),
        )

    op.create_table(
        "artifacts",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.Column("expired_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("length(digest) = 64", name=op.f("ck_artifacts_digest_is_sha256")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_artifacts")),
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
    op.create_table(
        "device_facts",
        sa.Column("facts_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("facts_digest", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("taken_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("facts_id", name=op.f("pk_device_facts")),
        sa.UniqueConstraint("device_id", "facts_digest", name=op.f("uq_device_facts_device_id_facts_digest")),
    )
    op.create_table(
        "events",
        sa.Column("event_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("from_state", sa.Text(), nullable=True),
        sa.Column("to_state", sa.Text(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index("ix_events_actor", ["actor", "event_id"], unique=False)
        batch_op.create_index("ix_events_at", ["at"], unique=False)
        batch_op.create_index(
            "ix_events_facts",
            ["subject_id", "kind", "at"],
            unique=False,
            sqlite_where=sa.text("subject IN ('device', 'host')"),
            postgresql_where=sa.text("subject IN ('device', 'host')"),
        )
        batch_op.create_index("ix_events_kind", ["kind", "event_id"], unique=False)
        batch_op.create_index("ix_events_subject", ["subject", "subject_id", "event_id"], unique=False)

    op.create_table(
        "hosts",
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("auto_admit", sa.Boolean(), nullable=False),
        sa.Column("credential_hash", sa.Text(), nullable=False),
        sa.Column("adb_port", sa.Integer(), nullable=True),
        sa.Column("max_runs", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("clock_ahead_s", sa.Double(), nullable=True),
        sa.Column("clock_uncertainty_s", sa.Double(), nullable=True),
        sa.Column("clock_compared_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("state IN ('active', 'draining', 'retired')", name=op.f("ck_hosts_state_known")),
        sa.CheckConstraint(
            "(clock_ahead_s IS NULL) = (clock_compared_at IS NULL)"
            " AND (clock_uncertainty_s IS NULL) = (clock_compared_at IS NULL)",
            name=op.f("ck_hosts_clock_comparison_is_whole"),
        ),
        sa.CheckConstraint("max_runs > 0", name=op.f("ck_hosts_max_runs_positive")),
        sa.PrimaryKeyConstraint("host_id", name=op.f("pk_hosts")),
        sa.UniqueConstraint("credential_hash", name=op.f("uq_hosts_credential_hash")),
    )
    op.create_table(
        "leader_leases",
        sa.Column("lease", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lease", name=op.f("pk_leader_leases")),
    )
    op.create_table(
        "matrices",
        sa.Column("matrix_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("harness", sa.Text(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("rejected_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rerun_of", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("submitted_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("request_key", sa.Text(), nullable=True),
        sa.Column("request_digest", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["rerun_of"], ["matrices.matrix_id"], name=op.f("fk_matrices_rerun_of")),
        sa.PrimaryKeyConstraint("matrix_id", name=op.f("pk_matrices")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("matrices", schema=None) as batch_op:
        batch_op.create_index(
            "uq_matrices_one_per_request",
            ["submitted_by", "request_key"],
            unique=True,
            sqlite_where=sa.text("request_key IS NOT NULL"),
            postgresql_where=sa.text("request_key IS NOT NULL"),
        )

    op.create_table(
        "programs",
        sa.Column("program_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("harness", sa.Text(), nullable=False),
        sa.Column("abi", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("env", sa.JSON(), nullable=False),
        sa.Column("command", sa.JSON(), nullable=False),
        sa.Column("definition", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("missing_flags", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("chosen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("program_id", name=op.f("pk_programs")),
        sa.UniqueConstraint("harness", "abi", "digest", name=op.f("uq_programs_harness_abi_digest")),
    )
    op.create_table(
        "devices",
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("presence", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("health", sa.Text(), nullable=False),
        sa.Column("admin", sa.Text(), nullable=False),
        sa.Column("facts_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("cpu_domain", sa.Text(), nullable=True),
        sa.Column("condition", sa.JSON(), nullable=True),
        sa.Column("recovery", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("settings_record", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("unit", sa.Integer(), nullable=True),
        sa.Column("rebaselined_at", sa.BigInteger(), nullable=True),
        sa.Column("reserved_until", sa.BigInteger(), nullable=True),
        sa.Column("reserved_by", sa.Text(), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("cleaned_fence", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "admin IN ('pending', 'active', 'cordoned', 'retired')", name=op.f("ck_devices_admin_known")
        ),
        sa.CheckConstraint(
            "health IN ('unknown', 'good', 'suspect', 'bad')", name=op.f("ck_devices_health_known")
        ),
        sa.CheckConstraint(
            "presence IN ('online', 'booting', 'offline', 'unauthorized', 'no_permission', 'wrong_mode', 'absent')",
            name=op.f("ck_devices_presence_known"),
        ),
        sa.CheckConstraint(
            "(reserved_until IS NULL) = (reserved_by IS NULL)", name=op.f("ck_devices_reservation_has_owner")
        ),
        sa.ForeignKeyConstraint(["facts_id"], ["device_facts.facts_id"], name=op.f("fk_devices_facts_id")),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_devices_host_id")),
        sa.PrimaryKeyConstraint("device_id", name=op.f("pk_devices")),
        sa.UniqueConstraint("label", name=op.f("uq_devices_label")),
    )
    with op.batch_alter_table("devices", schema=None) as batch_op:
        batch_op.create_index("ix_devices_host_id", ["host_id"], unique=False)

    op.create_table(
        "incidents",
        sa.Column("incident_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_incidents_host_id")),
        sa.PrimaryKeyConstraint("incident_id", name=op.f("pk_incidents")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("incidents", schema=None) as batch_op:
        batch_op.create_index(
            "uq_incidents_one_open_per_kind",
            ["host_id", "kind"],
            unique=True,
            sqlite_where=sa.text("ended_at IS NULL"),
            postgresql_where=sa.text("ended_at IS NULL"),
        )

    op.create_table(
        "job_templates",
        sa.Column(
            "matrix_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("variant_ids", sa.JSON(), nullable=False),
        sa.Column("program_ids", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_job_templates_matrix_id")
        ),
        sa.PrimaryKeyConstraint("matrix_id", name=op.f("pk_job_templates")),
    )
    op.create_table(
        "join_tokens",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("auto_admit", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.Column("used_by", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["used_by"], ["hosts.host_id"], name=op.f("fk_join_tokens_used_by")),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_join_tokens")),
    )
    op.create_table(
        "program_files",
        sa.Column("program_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("executable", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["digest"], ["artifacts.digest"], name=op.f("fk_program_files_digest")),
        sa.ForeignKeyConstraint(
            ["program_id"], ["programs.program_id"], name=op.f("fk_program_files_program_id")
        ),
        sa.PrimaryKeyConstraint("program_id", "path", name=op.f("pk_program_files")),
    )
    op.create_table(
        "rejections",
        sa.Column(
            "matrix_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("first_index", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("cells", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_rejections_matrix_id")),
        sa.PrimaryKeyConstraint("matrix_id", "first_index", name=op.f("pk_rejections")),
    )
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=False),
        sa.Column("exchange_seq", sa.BigInteger(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "state IN ('live', 'silent', 'lost', 'closed')", name=op.f("ck_sessions_state_known")
        ),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_sessions_host_id")),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("host_id", "epoch", name=op.f("uq_sessions_host_id_epoch")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.create_index(
            "uq_sessions_one_live_per_host",
            ["host_id"],
            unique=True,
            sqlite_where=sa.text("state IN ('live', 'silent')"),
            postgresql_where=sa.text("state IN ('live', 'silent')"),
        )

    op.create_table(
        "variants",
        sa.Column("variant_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("recipe_digest", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["digest"], ["artifacts.digest"], name=op.f("fk_variants_digest")),
        sa.PrimaryKeyConstraint("variant_id", name=op.f("pk_variants")),
        sa.UniqueConstraint("name", "digest", name=op.f("uq_variants_name_digest")),
    )
    op.create_table(
        "cells",
        sa.Column("cell_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("matrix_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cell_index", sa.Integer(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("variant_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("program_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("replica", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("baseline_index", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_cells_device_id")),
        sa.ForeignKeyConstraint(["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_cells_matrix_id")),
        sa.ForeignKeyConstraint(["program_id"], ["programs.program_id"], name=op.f("fk_cells_program_id")),
        sa.ForeignKeyConstraint(["variant_id"], ["variants.variant_id"], name=op.f("fk_cells_variant_id")),
        sa.PrimaryKeyConstraint("cell_id", name=op.f("pk_cells")),
        sa.UniqueConstraint("matrix_id", "cell_index", name=op.f("uq_cells_matrix_id_cell_index")),
    )
    with op.batch_alter_table("cells", schema=None) as batch_op:
        batch_op.create_index("ix_cells_of_device", ["matrix_id", "device_id", "cell_index"], unique=False)

    op.create_table(
        "device_actions",
        sa.Column("device_action_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("done", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("freed_bytes", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('identify', 'clean', 'check_settings', 'provision', 'restore_settings')",
            name=op.f("ck_device_actions_kind_known"),
        ),
        sa.CheckConstraint(
            "(finished_at IS NULL AND done IS NULL AND error IS NULL) OR (finished_at IS NOT NULL AND (done IS NULL) <> (error IS NULL))",
            name=op.f("ck_device_actions_finished_exactly_one_way"),
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name=op.f("fk_device_actions_device_id")
        ),
        sa.PrimaryKeyConstraint("device_action_id", name=op.f("pk_device_actions")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("device_actions", schema=None) as batch_op:
        batch_op.create_index("ix_device_actions_requested_at", ["requested_at"], unique=False)
        batch_op.create_index(
            "uq_device_actions_one_open_per_kind",
            ["device_id", "kind"],
            unique=True,
            sqlite_where=sa.text("finished_at IS NULL"),
            postgresql_where=sa.text("finished_at IS NULL"),
        )

    op.create_table(
        "lazy_expansions",
        sa.Column(
            "matrix_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("expanded_jobs", sa.Integer(), nullable=False),
        sa.Column("first_virtual_time", sa.BigInteger(), nullable=False),
        sa.Column("last_virtual_time", sa.BigInteger(), nullable=False),
        sa.Column("cancelled_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "expanded_jobs >= 0 AND expanded_jobs < jobs",
            name=op.f("ck_lazy_expansions_expanded_fewer_than_all"),
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name=op.f("fk_lazy_expansions_device_id")
        ),
        sa.ForeignKeyConstraint(
            ["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_lazy_expansions_matrix_id")
        ),
        sa.PrimaryKeyConstraint("matrix_id", "device_id", name=op.f("pk_lazy_expansions")),
    )
    with op.batch_alter_table("lazy_expansions", schema=None) as batch_op:
        batch_op.create_index(
            "ix_lazy_expansions_next",
            ["matrix_id", "expanded_jobs", "device_id"],
            unique=False,
            sqlite_where=sa.text("cancelled_at IS NULL"),
            postgresql_where=sa.text("cancelled_at IS NULL"),
        )

    op.create_table(
        "cancellations",
        sa.Column(
            "matrix_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("continued_at", sa.BigInteger(), nullable=False),
        sa.Column("after_job_id", sa.BigInteger(), nullable=False),
        sa.Column("cancelled_jobs", sa.Integer(), nullable=False),
        sa.Column("finished_jobs", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_cancellations_matrix_id")
        ),
        sa.PrimaryKeyConstraint("matrix_id", "device_id", name=op.f("pk_cancellations")),
    )
    op.create_table(
        "series",
        sa.Column("series_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("series_digest", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("recipe", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("harness", sa.Text(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_series_device_id")),
        sa.PrimaryKeyConstraint("series_id", name=op.f("pk_series")),
        sa.UniqueConstraint("series_digest", name=op.f("uq_series_series_digest")),
    )
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("matrix_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("cell_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("virtual_time", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(kind = 'benchmark') = (cell_id IS NOT NULL AND matrix_id IS NOT NULL)",
            name=op.f("ck_jobs_benchmark_has_cell"),
        ),
        sa.CheckConstraint(
            "(state = 'finished') = (outcome IS NOT NULL)", name=op.f("ck_jobs_outcome_exactly_when_finished")
        ),
        sa.CheckConstraint("kind IN ('benchmark', 'check')", name=op.f("ck_jobs_kind_known")),
        sa.CheckConstraint(
            "outcome IN ('succeeded', 'failed', 'unsupported', 'inconclusive', 'cancelled', 'expired')",
            name=op.f("ck_jobs_outcome_known"),
        ),
        sa.CheckConstraint("state IN ('queued', 'active', 'finished')", name=op.f("ck_jobs_state_known")),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.cell_id"], name=op.f("fk_jobs_cell_id")),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_jobs_device_id")),
        sa.ForeignKeyConstraint(["matrix_id"], ["matrices.matrix_id"], name=op.f("fk_jobs_matrix_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("cell_id", "round", "repeat", name=op.f("uq_jobs_cell_id_round_repeat")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(
            "ix_jobs_checks",
            ["device_id", "job_id"],
            unique=False,
            sqlite_where=sa.text("kind = 'check'"),
            postgresql_where=sa.text("kind = 'check'"),
        )
        batch_op.create_index("ix_jobs_matrix_id", ["matrix_id", "state", "job_id"], unique=False)
        batch_op.create_index(
            "ix_jobs_queue",
            ["device_id", sa.literal_column("priority DESC"), "virtual_time", "job_id"],
            unique=False,
            sqlite_where=sa.text("state = 'queued'"),
            postgresql_where=sa.text("state = 'queued'"),
        )
        batch_op.create_index(
            "uq_jobs_one_open_check_per_device",
            ["device_id"],
            unique=True,
            sqlite_where=sa.text("kind = 'check' AND state <> 'finished'"),
            postgresql_where=sa.text("kind = 'check' AND state <> 'finished'"),
        )

    op.create_table(
        "attempts",
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("facts_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("cpu_domain", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("blame", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("plan", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("waiting_for", sa.Text(), nullable=True),
        sa.Column("report_digest", sa.Text(), nullable=True),
        sa.Column("claimed_at", sa.BigInteger(), nullable=False),
        sa.Column("unfit_at", sa.BigInteger(), nullable=True),
        sa.Column("measuring_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "outcome IN ('succeeded', 'failed', 'unsupported', 'inconclusive', 'cancelled', 'expired')",
            name=op.f("ck_attempts_outcome_known"),
        ),
        sa.CheckConstraint(
            "state IN ('claimed', 'preparing', 'measuring', 'reporting', 'finished', 'returned', 'lost')",
            name=op.f("ck_attempts_state_known"),
        ),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_attempts_device_id")),
        sa.ForeignKeyConstraint(["facts_id"], ["device_facts.facts_id"], name=op.f("fk_attempts_facts_id")),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_attempts_host_id")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_attempts_job_id")),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.session_id"], name=op.f("fk_attempts_session_id")),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("device_id", "fence", name=op.f("uq_attempts_device_id_fence")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index("ix_attempts_device_claims", ["device_id", "claimed_at"], unique=False)
        batch_op.create_index("ix_attempts_job_id", ["job_id"], unique=False)
        batch_op.create_index(
            "ix_attempts_lost_by_device",
            ["job_id"],
            unique=False,
            sqlite_where=sa.text("outcome = 'inconclusive' AND blame = 'device'"),
            postgresql_where=sa.text("outcome = 'inconclusive' AND blame = 'device'"),
        )
        batch_op.create_index("ix_attempts_session_id", ["session_id"], unique=False)
        batch_op.create_index(
            "ix_attempts_session_live",
            ["session_id"],
            unique=False,
            sqlite_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
            postgresql_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
        )
        batch_op.create_index(
            "uq_attempts_one_live_per_cpu",
            ["cpu_domain"],
            unique=True,
            sqlite_where=sa.text(
                "cpu_domain IS NOT NULL AND state IN ('claimed', 'preparing', 'measuring', 'reporting')"
            ),
            postgresql_where=sa.text(
                "cpu_domain IS NOT NULL AND state IN ('claimed', 'preparing', 'measuring', 'reporting')"
            ),
        )
        batch_op.create_index(
            "uq_attempts_one_live_per_device",
            ["device_id"],
            unique=True,
            sqlite_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
            postgresql_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
        )
        batch_op.create_index(
            "uq_attempts_one_live_per_job",
            ["job_id"],
            unique=True,
            sqlite_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
            postgresql_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
        )

    op.create_table(
        "reference_runs",
        sa.Column("reference_run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("reference_key", sa.Text(), nullable=False),
        sa.Column("facts_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("program_digest", sa.Text(), nullable=False),
        sa.Column("value_ns", sa.Double(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("unfit_reasons", sa.Text(), nullable=True),
        sa.Column("measured_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "(verdict = 'unfit') = (unfit_reasons IS NOT NULL)",
            name=op.f("ck_reference_runs_unfit_has_reasons"),
        ),
        sa.CheckConstraint(
            "verdict IN ('unfit', 'learning', 'in_range', 'slow', 'fast', 'drifted')",
            name=op.f("ck_reference_runs_verdict_known"),
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.device_id"], name=op.f("fk_reference_runs_device_id")
        ),
        sa.ForeignKeyConstraint(
            ["facts_id"], ["device_facts.facts_id"], name=op.f("fk_reference_runs_facts_id")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_reference_runs_job_id")),
        sa.PrimaryKeyConstraint("reference_run_id", name=op.f("pk_reference_runs")),
        sa.UniqueConstraint("job_id", name=op.f("uq_reference_runs_job_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("reference_runs", schema=None) as batch_op:
        batch_op.create_index("ix_reference_runs_device_id", ["device_id", "measured_at"], unique=False)
        batch_op.create_index(
            "ix_reference_runs_reference_key",
            ["reference_key", "program_digest", "measured_at"],
            unique=False,
        )

    op.create_table(
        "evidence",
        sa.Column("evidence_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("report_digest", sa.Text(), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("body_bytes", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("expired_at", sa.BigInteger(), nullable=True),
        sa.Column("expired_by", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(body IS NULL) = (expired_at IS NOT NULL)", name=op.f("ck_evidence_body_until_expired")
        ),
        sa.CheckConstraint(
            "(expired_at IS NULL) = (expired_by IS NULL)", name=op.f("ck_evidence_expired_by_a_rule")
        ),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.attempt_id"], name=op.f("fk_evidence_attempt_id")),
        sa.PrimaryKeyConstraint("evidence_id", name=op.f("pk_evidence")),
        sa.UniqueConstraint("attempt_id", "report_digest", name=op.f("uq_evidence_attempt_id_report_digest")),
    )
    with op.batch_alter_table("evidence", schema=None) as batch_op:
        batch_op.create_index(
            "ix_evidence_stored",
            ["counted", "received_at", "body_bytes", "expired_at"],
            unique=False,
            sqlite_where=sa.text("expired_at IS NULL"),
            postgresql_where=sa.text("expired_at IS NULL"),
        )

    op.create_table(
        "measurements",
        sa.Column("measurement_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cell_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("series_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("variant_digest", sa.Text(), nullable=True),
        sa.Column("program_digest", sa.Text(), nullable=False),
        sa.Column("facts_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("accepted", sa.Boolean(), nullable=False),
        sa.Column("quality", sa.Text(), nullable=False),
        sa.Column("quality_reasons", sa.JSON(), nullable=False),
        sa.Column("actual_backend", sa.Text(), nullable=False),
        sa.Column("accelerator", sa.Text(), nullable=False),
        sa.Column("proof", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("sample_count", sa.Integer(), nullable=False),
        sa.Column("value_ns", sa.Double(), nullable=False),
        sa.Column("mean_ns", sa.Double(), nullable=False),
        sa.Column("min_ns", sa.BigInteger(), nullable=True),
        sa.Column("max_ns", sa.BigInteger(), nullable=True),
        sa.Column("p90_ns", sa.Double(), nullable=True),
        sa.Column("scatter", sa.Double(), nullable=True),
        sa.Column("samples", sa.LargeBinary(), nullable=True),
        sa.Column("notices", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("placement", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("controls", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("control_level", sa.Integer(), server_default="0", nullable=False),
        sa.Column("cpu_s", sa.Double(), nullable=True),
        sa.Column("parser_version", sa.Integer(), nullable=False),
        sa.Column("superseded_at", sa.BigInteger(), nullable=True),
        sa.Column("measured_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('samples', 'summary')", name=op.f("ck_measurements_kind_known")),
        sa.CheckConstraint(
            "quality IN ('valid', 'noisy', 'throttled', 'unplugged', 'uncontrolled', 'incomplete', 'fallback', 'unproven', 'coarse', 'implausible', 'withdrawn')",
            name=op.f("ck_measurements_quality_known"),
        ),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.attempt_id"], name=op.f("fk_measurements_attempt_id")
        ),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.cell_id"], name=op.f("fk_measurements_cell_id")),
        sa.ForeignKeyConstraint(
            ["facts_id"], ["device_facts.facts_id"], name=op.f("fk_measurements_facts_id")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_measurements_job_id")),
        sa.ForeignKeyConstraint(["series_id"], ["series.series_id"], name=op.f("fk_measurements_series_id")),
        sa.PrimaryKeyConstraint("measurement_id", name=op.f("pk_measurements")),
        sa.UniqueConstraint(
            "attempt_id", "parser_version", name=op.f("uq_measurements_attempt_id_parser_version")
        ),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("measurements", schema=None) as batch_op:
        batch_op.create_index("ix_measurements_cell_id", ["cell_id"], unique=False)
        batch_op.create_index("ix_measurements_series_id", ["series_id", "measured_at"], unique=False)
        batch_op.create_index(
            "uq_measurements_one_accepted_per_job",
            ["job_id"],
            unique=True,
            sqlite_where=sa.text("accepted"),
            postgresql_where=sa.text("accepted"),
        )


def downgrade() -> None:
    with op.batch_alter_table("measurements", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_measurements_one_accepted_per_job",
            sqlite_where=sa.text("accepted"),
            postgresql_where=sa.text("accepted"),
        )
        batch_op.drop_index("ix_measurements_series_id")
        batch_op.drop_index("ix_measurements_cell_id")

    op.drop_table("measurements")
    with op.batch_alter_table("evidence", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_evidence_stored",
            sqlite_where=sa.text("expired_at IS NULL"),
            postgresql_where=sa.text("expired_at IS NULL"),
        )

    op.drop_table("evidence")
    with op.batch_alter_table("reference_runs", schema=None) as batch_op:
        batch_op.drop_index("ix_reference_runs_reference_key")
        batch_op.drop_index("ix_reference_runs_device_id")

    op.drop_table("reference_runs")
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_attempts_one_live_per_job",
            sqlite_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
            postgresql_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
        )
        batch_op.drop_index(
            "uq_attempts_one_live_per_device",
            sqlite_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
            postgresql_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
        )
        batch_op.drop_index(
            "uq_attempts_one_live_per_cpu",
            sqlite_where=sa.text(
                "cpu_domain IS NOT NULL AND state IN ('claimed', 'preparing', 'measuring', 'reporting')"
            ),
            postgresql_where=sa.text(
                "cpu_domain IS NOT NULL AND state IN ('claimed', 'preparing', 'measuring', 'reporting')"
            ),
        )
        batch_op.drop_index(
            "ix_attempts_session_live",
            sqlite_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
            postgresql_where=sa.text("state IN ('claimed', 'preparing', 'measuring', 'reporting')"),
        )
        batch_op.drop_index("ix_attempts_session_id")
        batch_op.drop_index(
            "ix_attempts_lost_by_device",
            sqlite_where=sa.text("outcome = 'inconclusive' AND blame = 'device'"),
            postgresql_where=sa.text("outcome = 'inconclusive' AND blame = 'device'"),
        )
        batch_op.drop_index("ix_attempts_job_id")
        batch_op.drop_index("ix_attempts_device_claims")

    op.drop_table("attempts")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_jobs_one_open_check_per_device",
            sqlite_where=sa.text("kind = 'check' AND state <> 'finished'"),
            postgresql_where=sa.text("kind = 'check' AND state <> 'finished'"),
        )
        batch_op.drop_index(
            "ix_jobs_queue",
            sqlite_where=sa.text("state = 'queued'"),
            postgresql_where=sa.text("state = 'queued'"),
        )
        batch_op.drop_index("ix_jobs_matrix_id")
        batch_op.drop_index(
            "ix_jobs_checks",
            sqlite_where=sa.text("kind = 'check'"),
            postgresql_where=sa.text("kind = 'check'"),
        )

    op.drop_table("jobs")
    op.drop_table("series")
    op.drop_table("cancellations")
    with op.batch_alter_table("lazy_expansions", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_lazy_expansions_next",
            sqlite_where=sa.text("cancelled_at IS NULL"),
            postgresql_where=sa.text("cancelled_at IS NULL"),
        )

    op.drop_table("lazy_expansions")
    with op.batch_alter_table("device_actions", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_device_actions_one_open_per_kind",
            sqlite_where=sa.text("finished_at IS NULL"),
            postgresql_where=sa.text("finished_at IS NULL"),
        )
        batch_op.drop_index("ix_device_actions_requested_at")

    op.drop_table("device_actions")
    with op.batch_alter_table("cells", schema=None) as batch_op:
        batch_op.drop_index("ix_cells_of_device")

    op.drop_table("cells")
    op.drop_table("variants")
    with op.batch_alter_table("sessions", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_sessions_one_live_per_host",
            sqlite_where=sa.text("state IN ('live', 'silent')"),
            postgresql_where=sa.text("state IN ('live', 'silent')"),
        )

    op.drop_table("sessions")
    op.drop_table("rejections")
    op.drop_table("program_files")
    op.drop_table("join_tokens")
    op.drop_table("job_templates")
    with op.batch_alter_table("incidents", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_incidents_one_open_per_kind",
            sqlite_where=sa.text("ended_at IS NULL"),
            postgresql_where=sa.text("ended_at IS NULL"),
        )

    op.drop_table("incidents")
    with op.batch_alter_table("devices", schema=None) as batch_op:
        batch_op.drop_index("ix_devices_host_id")

    op.drop_table("devices")
    op.drop_table("programs")
    with op.batch_alter_table("matrices", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_matrices_one_per_request",
            sqlite_where=sa.text("request_key IS NOT NULL"),
            postgresql_where=sa.text("request_key IS NOT NULL"),
        )

    op.drop_table("matrices")
    op.drop_table("leader_leases")
    op.drop_table("hosts")
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.drop_index("ix_events_subject")
        batch_op.drop_index("ix_events_kind")
        batch_op.drop_index(
            "ix_events_facts",
            sqlite_where=sa.text("subject IN ('device', 'host')"),
            postgresql_where=sa.text("subject IN ('device', 'host')"),
        )
        batch_op.drop_index("ix_events_at")
        batch_op.drop_index("ix_events_actor")

    op.drop_table("events")
    op.drop_table("device_facts")
    op.drop_table("database_epochs")
    op.drop_table("artifacts")
    with op.batch_alter_table("alarms", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_alarms_one_open_per_kind",
            sqlite_where=sa.text("cleared_at IS NULL"),
            postgresql_where=sa.text("cleared_at IS NULL"),
        )

    op.drop_table("alarms")
    op.drop_table("access_tokens")
