"""Language models: the generation of a run, and the quality of a run whose output is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import op

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None

_QUALITY = "ck_measurements_quality_known"
_QUALITIES = (
    "valid",
    "noisy",
    "throttled",
    "capped",
    "swapped",
    "unplugged",
    "uncontrolled",
    "incomplete",
    "fallback",
    "unproven",
    "coarse",
    "implausible",
    "withdrawn",
)


def upgrade() -> None:
    with _without_views():
        _replace_qualities((*_QUALITIES[:-2], "wrong_output", *_QUALITIES[-2:]))
    op.add_column("measurements", sa.Column("generation", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    with _without_views():
        with op.batch_alter_table("measurements", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
            batch_op.drop_column("generation")
        # The older schema has no word for it; one that enters no comparison either stands for it.
        op.execute("UPDATE measurements SET quality = 'implausible' WHERE quality = 'wrong_output'")
        _replace_qualities(_QUALITIES)


def _replace_qualities(qualities: tuple[str, ...]) -> None:
    words = ", ".join(f"'{word}'" for word in qualities)
    with op.batch_alter_table("measurements", table_kwargs={"sqlite_autoincrement": True}) as batch_op:
        batch_op.drop_constraint(op.f(_QUALITY), type_="check")
        batch_op.create_check_constraint(op.f(_QUALITY), f"quality IN ({words})")


@contextmanager
def _without_views() -> Iterator[None]:
    """Take views away and put them back: SQLite copies the table, and refuses to rename one that a view reads."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        yield
        return
    views = connection.execute(sa.text("SELECT name, sql FROM sqlite_master WHERE type = 'view'")).all()
    for name, _ in views:
        op.execute(sa.text(f'DROP VIEW "{name}"'))
    yield
    for _, sql in views:
        connection.exec_driver_sql(sql)
