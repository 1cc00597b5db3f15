"""Results that others measured. No measurement, series or point refers to them."""

import sqlalchemy as sa

from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata, one_of, where
from farm.harness.external.results import ImportFormat, Statistic

#: Files that people imported.
imports = sa.Table(
    "imports",
    metadata,
    sa.Column("import_id", BigId, primary_key=True),
    #: SHA-256 of the file; its bytes are not kept.
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("format", sa.Text, nullable=False),
    #: Of `--harness`, whose adapter read it.
    sa.Column("harness", sa.Text),
    #: What was left out, and what was given beside the file.
    sa.Column("notes", sa.JSON, nullable=False),
    sa.Column("results", sa.Integer, nullable=False),
    sa.Column("imported_at", UtcTime, nullable=False),
    sa.Column("imported_by", sa.Text, nullable=False),
    sa.Column("withdrawn_at", UtcTime),
    sa.Column("withdrawn_by", sa.Text),
    sa.Column("reason", sa.Text),
    one_of("format", ImportFormat),
    # Who withdraws it, says why.
    sa.CheckConstraint(
        "(withdrawn_at IS NULL) = (reason IS NULL) AND (withdrawn_at IS NULL) = (withdrawn_by IS NULL)",
        name="withdrawn_for_a_reason",
    ),
    **NO_NUMBER_REUSE,
)
# A file is imported once; after it was withdrawn, again.
sa.Index("uq_imports_digest", imports.c.digest, unique=True, **where("withdrawn_at IS NULL"))
# Those since a time, and those of a person, newest first.
sa.Index("ix_imports_imported_at", imports.c.imported_at, imports.c.import_id)
sa.Index("ix_imports_imported_by", imports.c.imported_by, imports.c.import_id)

external_results = sa.Table(
    "external_results",
    metadata,
    sa.Column("result_id", BigId, primary_key=True),
    sa.Column("import_id", BigId, sa.ForeignKey("imports.import_id"), nullable=False),
    #: In the order of the file, from 0.
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("tool_version", sa.Text),
    sa.Column("model", sa.Text),
    #: As the file calls it, or the import; no device of this farm.
    sa.Column("device", sa.Text),
    sa.Column("os", sa.Text),
    sa.Column("backend", sa.Text),
    sa.Column("metric", sa.Text, nullable=False),
    #: In the unit of the file, as minimum, maximum, deviation and samples are.
    sa.Column("value", sa.Double, nullable=False),
    sa.Column("unit", sa.Text),
    sa.Column("statistic", sa.Text, nullable=False),
    sa.Column("clock_covers", sa.Text),
    sa.Column("sample_count", sa.BigInteger),
    sa.Column("minimum", sa.Double),
    sa.Column("maximum", sa.Double),
    sa.Column("deviation", sa.Double),
    sa.Column("samples", sa.JSON(none_as_null=True)),
    #: The text of the file.
    sa.Column("date", sa.Text),
    sa.Column("settings", sa.JSON, nullable=False),
    one_of("statistic", Statistic),
    # The results of a file have an order.
    sa.UniqueConstraint("import_id", "position"),
    **NO_NUMBER_REUSE,
)
# Results of a model, and of a device.
sa.Index("ix_external_results_model", external_results.c.model, external_results.c.result_id)
sa.Index("ix_external_results_device", external_results.c.device, external_results.c.result_id)
