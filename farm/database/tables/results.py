"""Series, measurements, and reference runs of device checks."""

import sqlalchemy as sa

from farm.core.checks.reference_run import ReferenceVerdict
from farm.core.results.looks.look import LookStop
from farm.core.runs.measurement import Quality, SampleKind
from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata, one_of, where

series = sa.Table(
    "series",
    metadata,
    sa.Column("series_id", BigId, primary_key=True),
    sa.Column("series_digest", sa.Text, nullable=False),
    #: None, as the recipe is, if the harness runs no model.
    sa.Column("model", sa.Text),
    sa.Column("recipe", sa.JSON(none_as_null=True)),
    sa.Column("backend", sa.Text, nullable=False),
    sa.Column("harness", sa.Text, nullable=False),
    #: Only settings that are not the harness's default, so that a new flag does not split old series.
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    # The digest is the identity.
    sa.UniqueConstraint("series_digest"),
)
# History of a model, and of a device.
sa.Index("ix_series_model", series.c.model, series.c.series_id)
sa.Index("ix_series_device_id", series.c.device_id, series.c.series_id)

measurements = sa.Table(
    "measurements",
    metadata,
    sa.Column("measurement_id", BigId, primary_key=True),
    sa.Column("job_id", BigId, sa.ForeignKey("jobs.job_id"), nullable=False),
    sa.Column("attempt_id", BigId, sa.ForeignKey("attempts.attempt_id"), nullable=False),
    sa.Column("cell_id", BigId, sa.ForeignKey("cells.cell_id"), nullable=False),
    sa.Column("series_id", BigId, sa.ForeignKey("series.series_id"), nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("block", sa.Integer, nullable=False, server_default="0"),
    sa.Column("repeat", sa.Integer, nullable=False),
    #: The versions of the series.
    sa.Column("variant_digest", sa.Text),
    sa.Column("program_digest", sa.Text, nullable=False),
    sa.Column("facts_id", BigId, sa.ForeignKey("device_facts.facts_id")),
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("quality", sa.Text, nullable=False),
    sa.Column("quality_reasons", sa.JSON, nullable=False),
    sa.Column("actual_backend", sa.Text, nullable=False),
    sa.Column("accelerator", sa.Text, nullable=False),
    sa.Column("proof", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("sample_count", sa.Integer, nullable=False),
    #: The median of the samples, or the tool's mean.
    sa.Column("value_ns", sa.Double, nullable=False),
    sa.Column("mean_ns", sa.Double, nullable=False),
    sa.Column("min_ns", sa.BigInteger),
    sa.Column("max_ns", sa.BigInteger),
    sa.Column("p90_ns", sa.Double),
    sa.Column("scatter", sa.Double),
    #: The least difference between two of its times; 0 where that does not matter, or was not known yet.
    sa.Column("clock_step_ns", sa.BigInteger, nullable=False, server_default="0"),
    #: farm.core.runs.samples; None for the kind `summary`.
    sa.Column("samples", sa.LargeBinary),
    #: Notices that do not lower its quality: conditions that the device does not report.
    sa.Column("notices", sa.JSON(none_as_null=True)),
    #: Further metrics that the harness printed: farm.core.runs.measurement.Metric.
    sa.Column("metrics", sa.JSON, nullable=False),
    #: The hardware that ran each part: farm.core.runs.placement.
    sa.Column("placement", sa.JSON(none_as_null=True)),
    #: Of a language model, regime, digests and caches: farm.core.runs.derived.generation.
    sa.Column("generation", sa.JSON(none_as_null=True)),
    #: The settings of the device as read back: farm.core.devices.controls.
    sa.Column("controls", sa.JSON(none_as_null=True)),
    #: farm.core.devices.controls.ControlLevel.
    sa.Column("control_level", sa.Integer, nullable=False, server_default="0"),
    #: The CPU time of the run.
    sa.Column("cpu_s", sa.Double),
    #: Ceilings of clocks below the hardware's during the run: farm.core.runs.ceilings. None: not known.
    sa.Column("ceilings", sa.JSON(none_as_null=True)),
    #: Measured and imported energy: farm.core.runs.derived.energy.EnergyReading, one for each method.
    sa.Column("energy", sa.JSON(none_as_null=True)),
    #: Temperatures right before the run: pairs that began far apart are not compared.
    sa.Column("start_skin_c", sa.Double),
    sa.Column("start_battery_c", sa.Double),
    #: The device's own time: which boot it was, its uptime right before the run, and how long the run took.
    #: None: the device hides it, or an older release measured.
    sa.Column("boot_id", sa.Text),
    sa.Column("start_uptime_s", sa.Double),
    sa.Column("duration_s", sa.Double),
    sa.Column("parser_version", sa.Integer, nullable=False),
    #: The time at which a reparse of the same evidence replaced it, or its retraction.
    sa.Column("superseded_at", UtcTime),
    #: 0 as parsed; each retraction of the measurement, and the end of one, is a copy with the next number.
    sa.Column("retraction", sa.Integer, nullable=False, server_default="0"),
    #: Of a retracted copy, whose quality is `withdrawn`: the person; the reason is in `quality_reasons`.
    sa.Column("retracted_by", sa.Text),
    sa.Column("measured_at", UtcTime, nullable=False),
    one_of("quality", Quality),
    one_of("kind", SampleKind),
    # What is retracted is not compared, and not as parsed.
    sa.CheckConstraint(
        "retracted_by IS NULL OR (retraction > 0 AND quality = 'withdrawn')", name="retracted_is_withdrawn"
    ),
    # A parser version parses an attempt's evidence once.
    sa.UniqueConstraint("attempt_id", "parser_version", "retraction"),
    **NO_NUMBER_REUSE,
)
# I4: at most one accepted measurement per job.
sa.Index(
    "uq_measurements_one_accepted_per_job",
    measurements.c.job_id,
    unique=True,
    **where("accepted"),
)
# Speedups: the measurements of a matrix's cells.
sa.Index("ix_measurements_cell_id", measurements.c.cell_id)
# What was retracted or parsed again since a time: answers as of a moment before.
sa.Index(
    "ix_measurements_superseded_at",
    measurements.c.superseded_at,
    **where("superseded_at IS NOT NULL"),
)
# History of one series.
sa.Index("ix_measurements_series_id", measurements.c.series_id, measurements.c.measured_at)

#: Looks at the cells of matrices that grow: farm.core.results.looks. They never change.
looks = sa.Table(
    "looks",
    metadata,
    sa.Column("cell_id", BigId, sa.ForeignKey("cells.cell_id"), primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    #: Of its device at that time, and those of them that counted.
    sa.Column("rounds", sa.Integer, nullable=False),
    sa.Column("usable", sa.Integer, nullable=False),
    #: The error of its interval, and the error spent so far; None where it stopped without an interval.
    sa.Column("level", sa.Double),
    sa.Column("spent", sa.Double),
    #: What was seen.
    sa.Column("ratio", sa.Double),
    sa.Column("ci_low", sa.Double),
    sa.Column("ci_high", sa.Double),
    sa.Column("verdict", sa.Text, nullable=False),
    #: The reason that the cell gets no further rounds.
    sa.Column("stopped", sa.Text),
    sa.Column("taken_at", UtcTime, nullable=False),
    one_of("stopped", LookStop),
    # An interval has spent error.
    sa.CheckConstraint("(level IS NULL) = (spent IS NULL)", name="level_is_spent"),
    # A cell without an interval has no look but the one that stops it.
    sa.CheckConstraint("level IS NOT NULL OR stopped IS NOT NULL", name="look_or_stop"),
)

reference_runs = sa.Table(
    "reference_runs",
    metadata,
    sa.Column("reference_run_id", BigId, primary_key=True),
    #: The check that it was part of.
    sa.Column("job_id", BigId, sa.ForeignKey("jobs.job_id"), nullable=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    #: The key of the reference range; never shared by physical and virtual devices.
    sa.Column("reference_key", sa.Text, nullable=False),
    sa.Column("facts_id", BigId, sa.ForeignKey("device_facts.facts_id")),
    #: SHA-256 of the timed program: each program has a history of its own.
    sa.Column("program_digest", sa.Text, nullable=False),
    sa.Column("value_ns", sa.Double, nullable=False),
    #: By the reference range at that time.
    sa.Column("verdict", sa.Text, nullable=False),
    #: The conditions of the device that made the run unfit for assessment, as text.
    sa.Column("unfit_reasons", sa.Text),
    sa.Column("measured_at", UtcTime, nullable=False),
    one_of("verdict", ReferenceVerdict),
    # An unfit run has its reasons.
    sa.CheckConstraint("(verdict = 'unfit') = (unfit_reasons IS NOT NULL)", name="unfit_has_reasons"),
    # A check has one reference run.
    sa.UniqueConstraint("job_id"),
    **NO_NUMBER_REUSE,
)
# Learning a reference range: the last runs of a reference key.
sa.Index(
    "ix_reference_runs_reference_key",
    reference_runs.c.reference_key,
    reference_runs.c.program_digest,
    reference_runs.c.measured_at,
)
# A device's own history, for its drift.
sa.Index("ix_reference_runs_device_id", reference_runs.c.device_id, reference_runs.c.measured_at)
