"""Results that others measured, by the files that they were imported from."""

import sqlalchemy as sa
from alembic import op

revision = "0105"
down_revision = "0104"
branch_labels = None
depends_on = None

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_FORMATS = (
    "format IN ('executorch', 'llama-bench', 'mlperf-mobile', 'ai-hub', 'litert-leaderboard', "
    "'benchmark-result', 'xctest', 'log')"
)
_STATISTICS = "statistic IN ('mean', 'median', 'p5', 'p95', 'value')"
_WITHDRAWN = "(withdrawn_at IS NULL) = (reason IS NULL) AND (withdrawn_at IS NULL) = (withdrawn_by IS NULL)"


def upgrade() -> None:
    op.create_table(
        "imports",
        sa.Column("import_id", _BIG_ID, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("harness", sa.Text(), nullable=True),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("results", sa.Integer(), nullable=False),
        sa.Column("imported_at", sa.BigInteger(), nullable=False),
        sa.Column("imported_by", sa.Text(), nullable=False),
        sa.Column("withdrawn_at", sa.BigInteger(), nullable=True),
        sa.Column("withdrawn_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint(_FORMATS, name=op.f("ck_imports_format_known")),
        sa.CheckConstraint(_WITHDRAWN, name=op.f("ck_imports_withdrawn_for_a_reason")),
        sa.PrimaryKeyConstraint("import_id", name=op.f("pk_imports")),
        sqlite_autoincrement=True,
    )
    open_imports = sa.text("withdrawn_at IS NULL")
    op.create_index(
        "uq_imports_digest",
        "imports",
        ["digest"],
        unique=True,
        sqlite_where=open_imports,
        postgresql_where=open_imports,
    )
    op.create_table(
        "external_results",
        sa.Column("result_id", _BIG_ID, nullable=False),
        sa.Column("import_id", _BIG_ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("tool_version", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("device", sa.Text(), nullable=True),
        sa.Column("os", sa.Text(), nullable=True),
        sa.Column("backend", sa.Text(), nullable=True),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=True),
        sa.Column("statistic", sa.Text(), nullable=False),
        sa.Column("clock_covers", sa.Text(), nullable=True),
        sa.Column("sample_count", sa.BigInteger(), nullable=True),
        sa.Column("minimum", sa.Double(), nullable=True),
        sa.Column("maximum", sa.Double(), nullable=True),
        sa.Column("deviation", sa.Double(), nullable=True),
        sa.Column("samples", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("date", sa.Text(), nullable=True),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.CheckConstraint(_STATISTICS, name=op.f("ck_external_results_statistic_known")),
        sa.ForeignKeyConstraint(
            ["import_id"], ["imports.import_id"], name=op.f("fk_external_results_import_id")
        ),
        sa.PrimaryKeyConstraint("result_id", name=op.f("pk_external_results")),
        sa.UniqueConstraint("import_id", "position", name=op.f("uq_external_results_import_id_position")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_external_results_model", "external_results", ["model", "result_id"], unique=False)
    op.create_index("ix_external_results_device", "external_results", ["device", "result_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_external_results_device", table_name="external_results")
    op.drop_index("ix_external_results_model", table_name="external_results")
    op.drop_table("external_results")
    op.drop_index("uq_imports_digest", table_name="imports")
    op.drop_table("imports")
