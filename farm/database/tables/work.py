"""What is to be run and was: matrices, cells, jobs, attempts and their evidence."""

import sqlalchemy as sa

from farm.core.jobs.attempt import LIVE_STATES, AttemptState
from farm.core.jobs.job import JobKind, JobState
from farm.core.runs.measurement import Outcome
from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, is_one_of, metadata, one_of, where

_LIVE_SQL = "state IN ({})".format(", ".join(f"'{state}'" for state in LIVE_STATES))


def is_live(of: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a row of attempts, or of an alias, is somebody's lease."""
    return is_one_of(of.c.state, LIVE_STATES)


matrices = sa.Table(
    "matrices",
    metadata,
    sa.Column("matrix_id", BigId, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("harness", sa.Text, nullable=False),
    #: As submitted, with defaults filled in and the seed drawn.
    sa.Column("spec", sa.JSON, nullable=False),
    sa.Column("rounds", sa.Integer, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    #: How many cells get no jobs: `rejections` has them.
    sa.Column("rejected_count", sa.Integer, nullable=False, server_default="0"),
    #: The matrix that this one runs again.
    sa.Column("rerun_of", BigId, sa.ForeignKey("matrices.matrix_id")),
    #: Who submitted it; None before schema 0003.
    sa.Column("submitted_by", sa.Text),
    sa.Column("created_at", UtcTime, nullable=False),
    #: Under which key it was submitted, and the digest of what was asked for; None without a key.
    sa.Column("request_key", sa.Text),
    sa.Column("request_digest", sa.Text),
    **NO_NUMBER_REUSE,
)
# Sent again because its answer was lost, a submission makes no second matrix.
_HAS_KEY = matrices.c.request_key.is_not(None)
sa.Index(
    "uq_matrices_one_per_request",
    matrices.c.submitted_by,
    matrices.c.request_key,
    unique=True,
    sqlite_where=_HAS_KEY,
    postgresql_where=_HAS_KEY,
)

#: The cells of a matrix that get no jobs, so many in a row: there may be a million, and nobody changes them.
rejections = sa.Table(
    "rejections",
    metadata,
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    #: The place of the first one among all of the matrix, from 0.
    sa.Column("first_index", sa.Integer, primary_key=True, autoincrement=False),
    #: Device, label and reason of each.
    sa.Column("cells", sa.JSON, nullable=False),
)

cells = sa.Table(
    "cells",
    metadata,
    sa.Column("cell_id", BigId, primary_key=True),
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), nullable=False),
    sa.Column("cell_index", sa.Integer, nullable=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    #: None where the harness runs no model.
    sa.Column("variant_id", BigId, sa.ForeignKey("variants.variant_id")),
    sa.Column("program_id", BigId, sa.ForeignKey("programs.program_id"), nullable=False),
    sa.Column("backend", sa.Text, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("replica", sa.Integer, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    #: The cell this one is compared to, by its index.
    sa.Column("baseline_index", sa.Integer),
    # A cell of a matrix is stored once.
    sa.UniqueConstraint("matrix_id", "cell_index"),
)
# The cells of one device: a block that is repeated, an explanation.
sa.Index("ix_cells_of_device", cells.c.matrix_id, cells.c.device_id, cells.c.cell_index)

#: What the rows of a large matrix are made from, while some of them are not there yet.
job_templates = sa.Table(
    "job_templates",
    metadata,
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    sa.Column("priority", sa.Integer, nullable=False),
    #: What its cells need, those not stored yet among them.
    sa.Column("variant_ids", sa.JSON, nullable=False),
    sa.Column("program_ids", sa.JSON, nullable=False),
    #: farm.core.matrices.job_template, as JSON, zlib-compressed.
    sa.Column("body", sa.LargeBinary, nullable=False),
)

#: How far the jobs of a large matrix are queued on a device. The row goes with the last of them.
lazy_expansions = sa.Table(
    "lazy_expansions",
    metadata,
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), primary_key=True),
    sa.Column("jobs", sa.Integer, nullable=False),
    #: The cursor: so many of them are queued, in the order in which the device runs them.
    sa.Column("expanded_jobs", sa.Integer, nullable=False),
    #: Of the first round and of the last: farm.core.jobs.fair_share.
    sa.Column("first_virtual_time", sa.BigInteger, nullable=False),
    sa.Column("last_virtual_time", sa.BigInteger, nullable=False),
    #: Since when the others are not to be queued any more.
    sa.Column("cancelled_at", UtcTime),
    # Nothing is queued twice, or without end.
    sa.CheckConstraint("expanded_jobs >= 0 AND expanded_jobs < jobs", name="expanded_fewer_than_all"),
)
# The cursor query: of a matrix, the devices that are behind the others.
sa.Index(
    "ix_lazy_expansions_next",
    lazy_expansions.c.matrix_id,
    lazy_expansions.c.expanded_jobs,
    lazy_expansions.c.device_id,
    **where("cancelled_at IS NULL"),
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("job_id", BigId, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id")),
    sa.Column("cell_id", BigId, sa.ForeignKey("cells.cell_id")),
    sa.Column("round", sa.Integer, nullable=False),
    #: 0, or how often this block (device and round) had to be measured again before.
    sa.Column("repeat", sa.Integer, nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    #: Within its priority, lower ones first: farm.core.jobs.fair_share.
    sa.Column("virtual_time", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text),
    sa.Column("code", sa.Text),
    sa.Column("message", sa.Text),
    #: The attempt whose report counts.
    sa.Column("attempt_id", BigId),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime),
    one_of("kind", JobKind),
    one_of("state", JobState),
    one_of("outcome", Outcome),
    # A job ends with an outcome, and only an ended job has one.
    sa.CheckConstraint("(state = 'finished') = (outcome IS NOT NULL)", name="outcome_exactly_when_finished"),
    # A benchmark belongs to a cell of a matrix, a check to neither.
    sa.CheckConstraint(
        "(kind = 'benchmark') = (cell_id IS NOT NULL AND matrix_id IS NOT NULL)", name="benchmark_has_cell"
    ),
    # A cell runs once per round and repeat of its block.
    sa.UniqueConstraint("cell_id", "round", "repeat"),
    **NO_NUMBER_REUSE,
)
# Claim: the head of a device's queue.
sa.Index(
    "ix_jobs_queue",
    jobs.c.device_id,
    jobs.c.priority.desc(),
    jobs.c.virtual_time,
    jobs.c.job_id,
    **where("state = 'queued'"),
)
# One check of a device at a time.
sa.Index(
    "uq_jobs_one_open_check_per_device",
    jobs.c.device_id,
    unique=True,
    **where("kind = 'check' AND state <> 'finished'"),
)
# Progress and results of a matrix; a page of its jobs is a range for each state.
sa.Index("ix_jobs_matrix_id", jobs.c.matrix_id, jobs.c.state, jobs.c.job_id)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("attempt_id", BigId, primary_key=True),
    sa.Column("job_id", BigId, sa.ForeignKey("jobs.job_id"), nullable=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    sa.Column("host_id", sa.Text, sa.ForeignKey("hosts.host_id"), nullable=False),
    sa.Column("session_id", BigId, sa.ForeignKey("sessions.session_id"), nullable=False),
    sa.Column("facts_id", BigId, sa.ForeignKey("device_facts.facts_id")),
    sa.Column("fence", sa.BigInteger, nullable=False),
    #: Copied from the facts at the claim: phones that share a CPU never run at the same time.
    sa.Column("cpu_domain", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text),
    sa.Column("blame", sa.Text),
    sa.Column("code", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("plan", sa.JSON, nullable=False),
    #: What its agent waits for before the run, in words: a phone that is too warm, say.
    sa.Column("waiting_for", sa.Text),
    #: SHA-256 of the report that settled it.
    sa.Column("report_digest", sa.Text),
    sa.Column("claimed_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime),
    one_of("state", AttemptState),
    one_of("outcome", Outcome),
    # A fencing token is given once per device.
    sa.UniqueConstraint("device_id", "fence"),
    **NO_NUMBER_REUSE,
)
# I1: the live attempt row is the device's lease.
sa.Index("uq_attempts_one_live_per_device", attempts.c.device_id, unique=True, **where(_LIVE_SQL))
# I2: a job is tried by one attempt at a time.
sa.Index("uq_attempts_one_live_per_job", attempts.c.job_id, unique=True, **where(_LIVE_SQL))
# Phones on one CPU would slow each other.
sa.Index(
    "uq_attempts_one_live_per_cpu",
    attempts.c.cpu_domain,
    unique=True,
    **where(f"cpu_domain IS NOT NULL AND {_LIVE_SQL}"),
)
# The exchange's list of what a session owns.
sa.Index("ix_attempts_session_live", attempts.c.session_id, **where(_LIVE_SQL))
# The tries of a job.
sa.Index("ix_attempts_job_id", attempts.c.job_id)
# What made a phone go away: few, in a farm of any size.
sa.Index(
    "ix_attempts_lost_by_device",
    attempts.c.job_id,
    **where("outcome = 'inconclusive' AND blame = 'device'"),
)

evidence = sa.Table(
    "evidence",
    metadata,
    sa.Column("evidence_id", BigId, primary_key=True),
    sa.Column("attempt_id", BigId, sa.ForeignKey("attempts.attempt_id"), nullable=False),
    sa.Column("report_digest", sa.Text, nullable=False),
    #: False when it came too late to decide anything; kept all the same.
    sa.Column("counted", sa.Boolean, nullable=False),
    #: The report's bytes, zlib-compressed.
    sa.Column("body", sa.LargeBinary),
    #: What the body takes, or took: a sum over many rows must not read their bodies.
    sa.Column("body_bytes", sa.BigInteger, nullable=False),
    sa.Column("received_at", UtcTime, nullable=False),
    #: Since when the body is gone, and the rule of retention that let it go.
    sa.Column("expired_at", UtcTime),
    sa.Column("expired_by", sa.Text),
    # Nothing disappears without being recorded as expired.
    sa.CheckConstraint("(body IS NULL) = (expired_at IS NOT NULL)", name="body_until_expired"),
    sa.CheckConstraint("(expired_at IS NULL) = (expired_by IS NULL)", name="expired_by_a_rule"),
    # The same report again is the same evidence.
    sa.UniqueConstraint("attempt_id", "report_digest"),
)
# Retention: what is kept, in the order it goes, and its sum without a look at the rows; for that SQLite wants
# the column of the condition in the index, too.
sa.Index(
    "ix_evidence_stored",
    evidence.c.counted,
    evidence.c.received_at,
    evidence.c.body_bytes,
    evidence.c.expired_at,
    **where("expired_at IS NULL"),
)
