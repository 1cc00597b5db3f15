"""Tables of numbers that others published are a format of imports, too."""

import sqlalchemy as sa
from alembic import op

revision = "0117"
down_revision = "0116"
branch_labels = None
depends_on = None

_KNOWN = "ck_imports_format_known"
_BEFORE = (
    "executorch",
    "llama-bench",
    "mlperf-mobile",
    "ai-hub",
    "litert-leaderboard",
    "benchmark-result",
    "xctest",
    "log",
)
_PUBLISHED = "published"


def _is_one_of(formats: tuple[str, ...]) -> str:
    listed = ", ".join(f"'{each}'" for each in formats)
    return f"format IN ({listed})"


def _allow(formats: tuple[str, ...]) -> None:
    with op.batch_alter_table("imports", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f(_KNOWN), type_="check")
        batch_op.create_check_constraint(op.f(_KNOWN), _is_one_of(formats))


def upgrade() -> None:
    _allow((*_BEFORE, _PUBLISHED))


def downgrade() -> None:
    published = sa.select(sa.column("import_id")).select_from(sa.table("imports"))
    published = published.where(sa.column("format") == _PUBLISHED)
    results = sa.table("external_results", sa.column("import_id"))
    op.execute(results.delete().where(results.c.import_id.in_(published)))
    imports = sa.table("imports", sa.column("format"))
    op.execute(imports.delete().where(imports.c.format == _PUBLISHED))
    _allow(_BEFORE)
