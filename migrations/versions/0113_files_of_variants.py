"""Variants of several files: each file of a variant has a row, and the variant's digest covers all of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import op

revision = "0113"
down_revision = "0112"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_FOREIGN_KEY = "fk_variants_digest"
_variants = sa.table(
    "variants",
    sa.column("variant_id", _ID),
    sa.column("name", sa.Text()),
    sa.column("digest", sa.Text()),
    sa.column("manifest", sa.JSON()),
)
_files = sa.table(
    "variant_files",
    sa.column("variant_id", _ID),
    sa.column("path", sa.Text()),
    sa.column("digest", sa.Text()),
)


def upgrade() -> None:
    op.create_table(
        "variant_files",
        sa.Column("variant_id", _ID, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["digest"], ["artifacts.digest"], name=op.f("fk_variant_files_digest")),
        sa.ForeignKeyConstraint(
            ["variant_id"], ["variants.variant_id"], name=op.f("fk_variant_files_variant_id")
        ),
        sa.PrimaryKeyConstraint("variant_id", "path", name=op.f("pk_variant_files")),
    )
    op.execute(
        "INSERT INTO variant_files (variant_id, path, digest) SELECT variant_id, '', digest FROM variants"
    )
    with _without_views(), op.batch_alter_table("variants") as batch_op:
        batch_op.drop_constraint(op.f(_FOREIGN_KEY), type_="foreignkey")


def downgrade() -> None:
    _leave_models_alone()
    op.drop_table("variant_files")
    with _without_views(), op.batch_alter_table("variants") as batch_op:
        batch_op.create_foreign_key(op.f(_FOREIGN_KEY), "artifacts", ["digest"], ["digest"])


def _leave_models_alone() -> None:
    """Take variants of several files for the model's own file: the older schema has no place for others.

    They keep their numbers under a name of their own, which no new matrix of the old name runs.
    """
    connection = op.get_bind()
    own = sa.select(_files.c.digest).where(_files.c.variant_id == _variants.c.variant_id, _files.c.path == "")
    of_several = sa.select(_files.c.variant_id).where(_files.c.path != "")
    query = sa.select(_variants, own.scalar_subquery().label("own")).where(
        _variants.c.variant_id.in_(of_several)
    )
    for row in connection.execute(query).all():
        manifest = {name: value for name, value in row.manifest.items() if name != "files"}
        [model] = [file for file in row.manifest["files"] if not file["path"]]
        connection.execute(
            _variants.update()
            .where(_variants.c.variant_id == row.variant_id)
            .values(
                name=f"{row.name}/{row.digest[:8]}",
                digest=row.own,
                manifest={**manifest, "digest": row.own, "size_bytes": model["size_bytes"]},
            )
        )


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
