"""Matrices, cells, jobs, attempts and their evidence."""

import sqlalchemy as sa

from farm.core.jobs.attempt import LIVE_STATES, AttemptState
from farm.core.jobs.job import JobKind, JobState
from farm.core.runs.measurement import Outcome
from farm.database.tables.columns import (
    NO_NUMBER_REUSE,
    BigId,
    UtcTime,
    is_one_of,
    literal,
    metadata,
    one_of,
    where,
)

_LIVE_SQL = "state IN ({})".format(", ".join(f"'{state}'" for state in LIVE_STATES))


def is_live(of: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition that a row of attempts, or of an alias, is live, so that it holds its device's
    lease.
    """
    return is_one_of(of.c.state, LIVE_STATES)


matrices = sa.Table(
    "matrices",
    metadata,
    sa.Column("matrix_id", BigId, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("harness", sa.Text, nullable=False),
    #: As submitted, with defaults and the seed filled in.
    sa.Column("spec", sa.JSON, nullable=False),
    #: How often every cell is measured; where `max_rounds` is more, at least.
    sa.Column("rounds", sa.Integer, nullable=False),
    #: None: of a matrix that was submitted before matrices could grow.
    sa.Column("max_rounds", sa.Integer),
    #: Candidates that a block has at most; None: a block is a round, as before there were smaller ones.
    sa.Column("block_candidates", sa.Integer),
    sa.Column("seed", sa.BigInteger, nullable=False),
    #: Cells with jobs, duplicates of baselines among them; `cells` has all of them once all jobs are queued.
    sa.Column("cell_count", sa.Integer, nullable=False, server_default="0"),
    #: The number of cells without jobs, which `rejections` lists.
    sa.Column("rejected_count", sa.Integer, nullable=False, server_default="0"),
    #: The matrix that this one reruns.
    sa.Column("rerun_of", BigId, sa.ForeignKey("matrices.matrix_id")),
    #: The attempt whose number it measures again, by the files of then: histories leave it out.
    sa.Column("repeated_attempt", BigId),
    #: The submitting actor.
    sa.Column("submitted_by", sa.Text),
    sa.Column("created_at", UtcTime, nullable=False),
    #: The idempotency key of the request and the digest of its body; None without a key.
    sa.Column("request_key", sa.Text),
    sa.Column("request_digest", sa.Text),
    **NO_NUMBER_REUSE,
)
# A submission that is sent again, because its response was lost, creates no second matrix.
_HAS_KEY = matrices.c.request_key.is_not(None)
sa.Index(
    "uq_matrices_one_per_request",
    matrices.c.submitted_by,
    matrices.c.request_key,
    unique=True,
    sqlite_where=_HAS_KEY,
    postgresql_where=_HAS_KEY,
)
# Lists since a time, and of one person.
sa.Index("ix_matrices_created_at", matrices.c.created_at, matrices.c.matrix_id)
sa.Index("ix_matrices_submitted_by", matrices.c.submitted_by, matrices.c.matrix_id)

#: Parts of three characters of the names of matrices, in one case, by which texts are found in names.
name_trigrams = sa.Table(
    "name_trigrams",
    metadata,
    #: Empty in the row that each indexed matrix has: names may be shorter than three characters.
    sa.Column("trigram", sa.Text, primary_key=True),
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

#: The cells of a matrix without jobs, many in a row: there may be a million, and they never change.
rejections = sa.Table(
    "rejections",
    metadata,
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    #: The index of the first one among all rejections of the matrix, from 0.
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
    #: None if the harness runs no model.
    sa.Column("variant_id", BigId, sa.ForeignKey("variants.variant_id")),
    sa.Column("program_id", BigId, sa.ForeignKey("programs.program_id"), nullable=False),
    sa.Column("backend", sa.Text, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("replica", sa.Integer, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    #: The index of the cell that this one is compared with.
    sa.Column("baseline_index", sa.Integer),
    # A cell of a matrix is stored once.
    sa.UniqueConstraint("matrix_id", "cell_index"),
)
# The cells of one device, for repeated blocks and explanations.
sa.Index("ix_cells_of_device", cells.c.matrix_id, cells.c.device_id, cells.c.cell_index)
# Whether any matrix runs a file, before its variant gets another name.
sa.Index("ix_cells_variant", cells.c.variant_id)
# The last A/A pairs of a device.
sa.Index("ix_cells_duplicates", cells.c.device_id, cells.c.matrix_id, **where("replica > 1"))

#: The templates of large matrices, from which their rows are generated while some are missing.
job_templates = sa.Table(
    "job_templates",
    metadata,
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    sa.Column("priority", sa.Integer, nullable=False),
    #: The files that its cells need, including cells that are not stored yet.
    sa.Column("variant_ids", sa.JSON, nullable=False),
    sa.Column("program_ids", sa.JSON, nullable=False),
    #: farm.core.matrices.job_template, as JSON, zlib-compressed.
    sa.Column("body", sa.LargeBinary, nullable=False),
)

#: The progress of queueing a large matrix on a device. The row is deleted with the last job.
lazy_expansions = sa.Table(
    "lazy_expansions",
    metadata,
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), primary_key=True),
    sa.Column("jobs", sa.Integer, nullable=False),
    #: The cursor: the number of queued jobs, in the order in which the device runs them.
    sa.Column("expanded_jobs", sa.Integer, nullable=False),
    #: Of the first round and of the last: farm.core.jobs.fair_share.
    sa.Column("first_virtual_time", sa.BigInteger, nullable=False),
    sa.Column("last_virtual_time", sa.BigInteger, nullable=False),
    #: The time at which queueing of the others was cancelled.
    sa.Column("cancelled_at", UtcTime),
    # No job is queued twice, and a finished expansion has no row.
    sa.CheckConstraint("expanded_jobs >= 0 AND expanded_jobs < jobs", name="expanded_fewer_than_all"),
)
# The cursor query: the devices of a matrix with the fewest queued jobs.
sa.Index(
    "ix_lazy_expansions_next",
    lazy_expansions.c.matrix_id,
    lazy_expansions.c.expanded_jobs,
    lazy_expansions.c.device_id,
    **where("cancelled_at IS NULL"),
)

# The matrices that grow: few, and looked for at every tick.
sa.Index("ix_matrices_growing", matrices.c.matrix_id, **where("max_rounds > rounds"))

#: The growth of a matrix on a device: the rounds that are queued or run there now, and the look at them.
round_growths = sa.Table(
    "round_growths",
    metadata,
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), primary_key=True),
    #: The rounds that were added together, and the number of their jobs; 0 for those of the submission.
    sa.Column("first_round", sa.Integer, nullable=False),
    sa.Column("last_round", sa.Integer, nullable=False),
    sa.Column("jobs", sa.Integer, nullable=False),
    #: The cursor of queueing: of these jobs, in the order in which the device runs them.
    sa.Column("queued_jobs", sa.Integer, nullable=False),
    #: The virtual time of the first of them.
    sa.Column("virtual_time", sa.BigInteger, nullable=False),
    #: The cursor of looking: the index of the last cell that was inspected after these rounds; -1 before.
    sa.Column("looked_index", sa.Integer, nullable=False),
    #: The fewest rounds that a cell needs for its next look, of the cells inspected so far.
    sa.Column("missing_rounds", sa.Integer),
    #: The time at which no cell needed a further round, or the rest was cancelled.
    sa.Column("finished_at", UtcTime),
    # No job is queued twice.
    sa.CheckConstraint("queued_jobs >= 0 AND queued_jobs <= jobs", name="queued_no_more_than_all"),
)
# The growth query: what is not finished.
sa.Index(
    "ix_round_growths_open",
    round_growths.c.matrix_id,
    round_growths.c.device_id,
    **where("finished_at IS NULL"),
)

#: Cancellations that need more than one transaction. The row is deleted with the last of them, so one that
#: is left belongs to a farm that was killed in between, or to a request that is still at work.
cancellations = sa.Table(
    "cancellations",
    metadata,
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), primary_key=True, autoincrement=False),
    #: Empty: on all devices. Not a foreign key for that reason.
    sa.Column("device_id", sa.Text, primary_key=True),
    sa.Column("requested_by", sa.Text, nullable=False),
    #: The last transaction of the request.
    sa.Column("continued_at", UtcTime, nullable=False),
    #: The cursor: queued jobs up to this one are cancelled.
    sa.Column("after_job_id", sa.BigInteger, nullable=False),
    sa.Column("cancelled_jobs", sa.Integer, nullable=False),
    sa.Column("finished_jobs", sa.Integer, nullable=False),
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
    #: Of its device and round, from 0: farm.core.matrices.blocks.
    sa.Column("block", sa.Integer, nullable=False, server_default="0"),
    #: The number of earlier repeats of this block.
    sa.Column("repeat", sa.Integer, nullable=False),
    #: Its place in the planned order of the block, from 1; None: a check, or queued before it was recorded.
    sa.Column("place", sa.Integer),
    sa.Column("priority", sa.Integer, nullable=False),
    #: Within a priority, lower ones run first: farm.core.jobs.fair_share.
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
    # Exactly finished jobs have an outcome.
    sa.CheckConstraint("(state = 'finished') = (outcome IS NOT NULL)", name="outcome_exactly_when_finished"),
    # A benchmark belongs to a cell of a matrix, a check to neither.
    sa.CheckConstraint(
        "(kind = 'benchmark') = (cell_id IS NOT NULL AND matrix_id IS NOT NULL)", name="benchmark_has_cell"
    ),
    # A cell has one job per block and its repeat; a baseline is in several blocks of a round.
    sa.UniqueConstraint("cell_id", "round", "block", "repeat"),
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
# A device has one open check at a time.
sa.Index(
    "uq_jobs_one_open_check_per_device",
    jobs.c.device_id,
    unique=True,
    **where("kind = 'check' AND state <> 'finished'"),
)
# A device's last checks.
sa.Index("ix_jobs_checks", jobs.c.device_id, jobs.c.job_id, **where("kind = 'check'"))
# Progress and results of a matrix; a page of its jobs is one range per state.
sa.Index("ix_jobs_matrix_id", jobs.c.matrix_id, jobs.c.state, jobs.c.job_id)

# Written as the conditions of the indexes above: neither database takes a partial index for a parameter.
JOB_IS_QUEUED = jobs.c.state == literal(JobState.QUEUED)
JOB_IS_UNFINISHED = jobs.c.state != literal(JobState.FINISHED)
JOB_IS_CHECK = jobs.c.kind == literal(JobKind.CHECK)

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
    #: Copied at the claim: devices that share a CPU never run at the same time.
    sa.Column("cpu_domain", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text),
    sa.Column("blame", sa.Text),
    sa.Column("code", sa.Text),
    sa.Column("message", sa.Text),
    #: None once a rule of retention removed it: its raw output is gone, too.
    sa.Column("plan", sa.JSON(none_as_null=True)),
    #: The condition that its agent waits for before the run, as text, such as a device that is too warm.
    sa.Column("waiting_for", sa.Text),
    #: SHA-256 of the report that settled it.
    sa.Column("report_digest", sa.Text),
    sa.Column("claimed_at", UtcTime, nullable=False),
    #: The time at which its agent first reported such a condition, and that the program runs.
    sa.Column("unfit_at", UtcTime),
    sa.Column("measuring_at", UtcTime),
    sa.Column("finished_at", UtcTime),
    one_of("state", AttemptState),
    one_of("outcome", Outcome),
    # A fencing token of a device is used once.
    sa.UniqueConstraint("device_id", "fence"),
    **NO_NUMBER_REUSE,
)
# I1: the live attempt row is the device's lease.
sa.Index("uq_attempts_one_live_per_device", attempts.c.device_id, unique=True, **where(_LIVE_SQL))
# I2: a job has one live attempt at a time.
sa.Index("uq_attempts_one_live_per_job", attempts.c.job_id, unique=True, **where(_LIVE_SQL))
# Devices on one CPU would slow each other down.
sa.Index(
    "uq_attempts_one_live_per_cpu",
    attempts.c.cpu_domain,
    unique=True,
    **where(f"cpu_domain IS NOT NULL AND {_LIVE_SQL}"),
)
# The exchange: the live attempts of a session.
sa.Index("ix_attempts_session_live", attempts.c.session_id, **where(_LIVE_SQL))
# Retention, and the foreign key: whether a session has attempts.
sa.Index("ix_attempts_session_id", attempts.c.session_id)
# The attempts of a job.
sa.Index("ix_attempts_job_id", attempts.c.job_id)
# Usage: the attempts of a device in a week.
sa.Index("ix_attempts_device_claims", attempts.c.device_id, attempts.c.claimed_at)
# Attempts that lost their device: few in any farm.
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
    #: False if it arrived too late to settle the attempt.
    sa.Column("counted", sa.Boolean, nullable=False),
    #: The report's bytes, zlib-compressed.
    sa.Column("body", sa.LargeBinary),
    #: The size of the body, deleted or not: a sum over many rows must not read the bodies.
    sa.Column("body_bytes", sa.BigInteger, nullable=False),
    sa.Column("received_at", UtcTime, nullable=False),
    #: The time at which the body was deleted, and the retention rule that applied.
    sa.Column("expired_at", UtcTime),
    sa.Column("expired_by", sa.Text),
    # A body is never deleted without a record.
    sa.CheckConstraint("(body IS NULL) = (expired_at IS NOT NULL)", name="body_until_expired"),
    sa.CheckConstraint("(expired_at IS NULL) = (expired_by IS NULL)", name="expired_by_a_rule"),
    # A repeated report is the same evidence.
    sa.UniqueConstraint("attempt_id", "report_digest"),
)
# Retention: stored bodies in the order of deletion, and their total size from the index alone; for that,
# SQLite needs the column of the condition in the index.
sa.Index(
    "ix_evidence_stored",
    evidence.c.counted,
    evidence.c.received_at,
    evidence.c.body_bytes,
    evidence.c.expired_at,
    **where("expired_at IS NULL"),
)
