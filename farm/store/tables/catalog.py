"""What can be run: artifacts, variants, programs."""

import sqlalchemy as sa

from farm.store.tables.columns import BigId, UtcTime, metadata

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.CheckConstraint("length(digest) = 64", name="digest_is_sha256"),
)

variants = sa.Table(
    "variants",
    metadata,
    sa.Column("variant_id", BigId, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("recipe_digest", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, sa.ForeignKey("artifacts.digest"), nullable=False),
    sa.Column("manifest", sa.JSON, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    # Registering the same file under the same name again is the same variant.
    sa.UniqueConstraint("name", "digest"),
)

programs = sa.Table(
    "programs",
    metadata,
    sa.Column("program_id", BigId, primary_key=True),
    sa.Column("harness", sa.Text, nullable=False),
    sa.Column("abi", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, sa.ForeignKey("artifacts.digest"), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    # The newest row of a harness and ABI is the one new matrices use.
    sa.UniqueConstraint("harness", "abi", "digest"),
)
