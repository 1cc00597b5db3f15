"""Reference runs of device checks, and alarms."""

import sqlalchemy as sa

from farm.core.checks.reference_run import ReferenceVerdict
from farm.core.operations.alarm import AlarmKind
from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata, one_of, where
from farm.database.tables.work import jobs

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

# A device's last checks.
sa.Index("ix_jobs_checks", jobs.c.device_id, jobs.c.job_id, **where("kind = 'check'"))

alarms = sa.Table(
    "alarms",
    metadata,
    sa.Column("alarm_id", BigId, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    #: The kind of its subject, as in events: `device`, `host`, `cell`, `series`.
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("subject_id", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("hint", sa.Text, nullable=False),
    sa.Column("raised_at", UtcTime, nullable=False),
    #: When the condition ended, or an operator acknowledged it.
    sa.Column("cleared_at", UtcTime),
    sa.Column("cleared_by", sa.Text),
    #: When the operators' command took it, and the state of its retries until then.
    sa.Column("notified_at", UtcTime),
    sa.Column("notify_attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("notify_again_at", UtcTime),
    one_of("kind", AlarmKind),
    # A cleared alarm has the actor that cleared it.
    sa.CheckConstraint("(cleared_at IS NULL) = (cleared_by IS NULL)", name="cleared_has_actor"),
    **NO_NUMBER_REUSE,
)
# A condition raises one alarm, however often it is detected.
sa.Index(
    "uq_alarms_one_open_per_kind",
    alarms.c.kind,
    alarms.c.subject,
    alarms.c.subject_id,
    unique=True,
    **where("cleared_at IS NULL"),
)
