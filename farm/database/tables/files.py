"""Artifacts, variants and programs."""

import sqlalchemy as sa

from farm.database.tables.columns import BigId, UtcTime, metadata

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    #: The last time that a claim needed the bytes, or a client uploaded them.
    sa.Column("used_at", UtcTime, nullable=False),
    #: The time at which the bytes were deleted to free space; the row stays: measurements refer to it.
    sa.Column("expired_at", UtcTime),
    #: Whose upload put the bytes there, for their quota; NULL for those of earlier releases.
    sa.Column("stored_by", sa.Text),
    sa.CheckConstraint("length(digest) = 64", name="digest_is_sha256"),
)
# What the files of a person take.
sa.Index("ix_artifacts_stored_by", artifacts.c.stored_by)

variants = sa.Table(
    "variants",
    metadata,
    sa.Column("variant_id", BigId, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    #: Rises each time that the name is given to a file: new matrices run the one with the highest.
    sa.Column("name_order", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("recipe_digest", sa.Text, nullable=False),
    #: Over all of its files; of one file, that file's own.
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("manifest", sa.JSON, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    #: They and operators may give the name another file; where it is NULL, anyone may.
    sa.Column("registered_by", sa.Text),
    # Registering the same files under the same name again is the same variant.
    sa.UniqueConstraint("name", "digest"),
)
# The current file of a name, and of each file the one before it.
sa.Index("ix_variants_name", variants.c.name, variants.c.name_order, unique=True)
# Those since a time, and those of a person, newest first.
sa.Index("ix_variants_created_at", variants.c.created_at, variants.c.variant_id)
sa.Index("ix_variants_registered_by", variants.c.registered_by, variants.c.variant_id)

variant_files = sa.Table(
    "variant_files",
    metadata,
    sa.Column("variant_id", BigId, sa.ForeignKey("variants.variant_id"), primary_key=True),
    #: Beside the model on the device; empty for the model itself.
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, sa.ForeignKey("artifacts.digest"), nullable=False),
)

programs = sa.Table(
    "programs",
    metadata,
    sa.Column("program_id", BigId, primary_key=True),
    sa.Column("harness", sa.Text, nullable=False),
    sa.Column("abi", sa.Text, nullable=False),
    #: Over files, environment, command and definition: the program version of its series.
    sa.Column("digest", sa.Text, nullable=False),
    #: The file that is started.
    sa.Column("entry", sa.Text, nullable=False),
    sa.Column("env", sa.JSON, nullable=False),
    sa.Column("command", sa.JSON, nullable=False),
    #: The command and output format of a generic harness; None if the farm has an adapter.
    sa.Column("definition", sa.JSON(none_as_null=True)),
    #: Flags of the adapter that this program does not support.
    sa.Column("missing_flags", sa.JSON, nullable=False),
    #: Name, version, digest and source of each part that it was built from; None if that was not stated.
    sa.Column("built_with", sa.JSON(none_as_null=True)),
    sa.Column("created_at", UtcTime, nullable=False),
    #: The time of its last registration: new matrices use the latest of a harness and ABI.
    sa.Column("chosen_at", UtcTime, nullable=False),
    # Registering the same files again is the same program.
    sa.UniqueConstraint("harness", "abi", "digest"),
)

program_files = sa.Table(
    "program_files",
    metadata,
    sa.Column("program_id", BigId, sa.ForeignKey("programs.program_id"), primary_key=True),
    #: Relative to the run's folder.
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, sa.ForeignKey("artifacts.digest"), nullable=False),
    sa.Column("executable", sa.Boolean, nullable=False),
)
