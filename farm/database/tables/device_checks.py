"""What is learned of phones over time: results of golden runs, and alarms."""

import sqlalchemy as sa

from farm.core.checks.reference_run import ReferenceVerdict
from farm.core.operations.alarm import AlarmKind
from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata, one_of, where
from farm.database.tables.work import jobs

reference_runs = sa.Table(
    "reference_runs",
    metadata,
    sa.Column("reference_run_id", BigId, primary_key=True),
    #: The check it was a part of.
    sa.Column("job_id", BigId, sa.ForeignKey("jobs.job_id"), nullable=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    #: What bands are learned by; never one of a phone and one of a virtual phone.
    sa.Column("reference_key", sa.Text, nullable=False),
    sa.Column("facts_id", BigId, sa.ForeignKey("device_facts.facts_id")),
    #: SHA-256 of the program that was timed: another program has another history.
    sa.Column("program_digest", sa.Text, nullable=False),
    sa.Column("value_ns", sa.Double, nullable=False),
    #: By the band of that time.
    sa.Column("verdict", sa.Text, nullable=False),
    #: What the phone was like that it could not be judged by it, in words.
    sa.Column("unfit_reasons", sa.Text),
    sa.Column("measured_at", UtcTime, nullable=False),
    one_of("verdict", ReferenceVerdict),
    # A run that says nothing of its phone says why.
    sa.CheckConstraint("(verdict = 'unfit') = (unfit_reasons IS NOT NULL)", name="unfit_has_reasons"),
    # A check has one golden run.
    sa.UniqueConstraint("job_id"),
    **NO_NUMBER_REUSE,
)
# Learning a band: the last runs of a kind of phone.
sa.Index(
    "ix_reference_runs_reference_key",
    reference_runs.c.reference_key,
    reference_runs.c.program_digest,
    reference_runs.c.measured_at,
)
# A phone's own history, for its drift.
sa.Index("ix_reference_runs_device_id", reference_runs.c.device_id, reference_runs.c.measured_at)

# A device's last checks.
sa.Index("ix_jobs_checks", jobs.c.device_id, jobs.c.job_id, **where("kind = 'check'"))

alarms = sa.Table(
    "alarms",
    metadata,
    sa.Column("alarm_id", BigId, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    #: What it is about, in the words of events: `device`, `host`, `cell`, `series`.
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("subject_id", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("hint", sa.Text, nullable=False),
    sa.Column("raised_at", UtcTime, nullable=False),
    #: Since when it is over, or an operator says that it is seen to.
    sa.Column("cleared_at", UtcTime),
    sa.Column("cleared_by", sa.Text),
    #: Since when the operators' command knows of it, and how it is tried until then.
    sa.Column("notified_at", UtcTime),
    sa.Column("notify_attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("notify_again_at", UtcTime),
    one_of("kind", AlarmKind),
    # Somebody or something cleared it.
    sa.CheckConstraint("(cleared_at IS NULL) = (cleared_by IS NULL)", name="cleared_has_actor"),
    **NO_NUMBER_REUSE,
)
# The same trouble is one alarm, however often it is noticed.
sa.Index(
    "uq_alarms_one_open_per_kind",
    alarms.c.kind,
    alarms.c.subject,
    alarms.c.subject_id,
    unique=True,
    **where("cleared_at IS NULL"),
)
