"""The schema: every table, with the rule each constraint enforces and the query each index serves."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from farm.core.attempt import LIVE, AttemptState
from farm.core.device import Admin, Health, Presence
from farm.core.job import JobKind, JobState
from farm.core.measurement import Outcome, Quality, SampleKind

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An aware datetime, stored as whole microseconds since 1970-01-01 UTC on every database."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else _EPOCH + timedelta(microseconds=value)


def _one_of(column: str, words: type[StrEnum]) -> sa.CheckConstraint:
    """Only words of the enum; a word nobody knows would be a state nobody leaves."""
    listed = ", ".join(f"'{word.value}'" for word in words)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


_LIVE_SQL = "state IN ({})".format(", ".join(f"'{state}'" for state in LIVE))


def word(value: StrEnum) -> sa.BindParameter[str]:
    """A word of ours written into the statement itself, as it stands in a partial index.

    Neither SQLite nor a prepared statement of PostgreSQL sees that a partial index serves a query whose words
    are parameters.
    """
    return sa.bindparam(None, value.value, type_=sa.Text(), literal_execute=True)


def is_one_of(column: sa.ColumnElement[Any], words: Iterable[StrEnum]) -> sa.ColumnElement[bool]:
    """As `word`, for several of them."""
    values = [value.value for value in words]
    return column.in_(sa.bindparam(None, values, expanding=True, literal_execute=True))


def is_live(of: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a row of attempts, or of an alias, is somebody's lease."""
    return is_one_of(of.c.state, LIVE)


class HostState(StrEnum):
    """What the operator wants of a host."""

    ACTIVE = "active"
    DRAINING = "draining"
    RETIRED = "retired"


class SessionState(StrEnum):
    """One life of an agent's process."""

    LIVE = "live"
    SILENT = "silent"
    LOST = "lost"
    CLOSED = "closed"


#: The one session of a host that may call is in one of these.
OPEN_SESSION = (SessionState.LIVE, SessionState.SILENT)


hosts = sa.Table(
    "hosts",
    metadata,
    sa.Column("host_id", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    #: New phones of this host become active without an operator.
    sa.Column("auto_admit", sa.Boolean, nullable=False),
    sa.Column("credential_hash", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    _one_of("state", HostState),
    # A bearer token names one host.
    sa.UniqueConstraint("credential_hash"),
)

join_tokens = sa.Table(
    "join_tokens",
    metadata,
    sa.Column("token_hash", sa.Text, primary_key=True),
    sa.Column("auto_admit", sa.Boolean, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    sa.Column("used_at", UtcTime),
    sa.Column("used_by", sa.Text, sa.ForeignKey("hosts.host_id")),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("session_id", BigId, primary_key=True),
    sa.Column("host_id", sa.Text, sa.ForeignKey("hosts.host_id"), nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("boot_id", sa.Text, nullable=False),
    sa.Column("agent_version", sa.Text, nullable=False),
    #: The highest exchange that was applied; a lower one changes nothing.
    sa.Column("exchange_seq", sa.BigInteger, nullable=False),
    sa.Column("opened_at", UtcTime, nullable=False),
    sa.Column("beat_at", UtcTime, nullable=False),
    _one_of("state", SessionState),
    # An epoch is used once.
    sa.UniqueConstraint("host_id", "epoch"),
)
# One life of an agent at a time.
sa.Index(
    "uq_sessions_one_live_per_host",
    sessions.c.host_id,
    unique=True,
    **_where("state IN ('live', 'silent')"),
)

device_facts = sa.Table(
    "device_facts",
    metadata,
    sa.Column("facts_id", BigId, primary_key=True),
    sa.Column("device_id", sa.Text, nullable=False),
    sa.Column("facts_digest", sa.Text, nullable=False),
    sa.Column("facts", sa.JSON, nullable=False),
    sa.Column("taken_at", UtcTime, nullable=False),
    # The same facts are one snapshot, however often they are reported.
    sa.UniqueConstraint("device_id", "facts_digest"),
)

devices = sa.Table(
    "devices",
    metadata,
    sa.Column("device_id", sa.Text, primary_key=True),
    sa.Column("host_id", sa.Text, sa.ForeignKey("hosts.host_id"), nullable=False),
    sa.Column("serial", sa.Text, nullable=False),
    sa.Column("presence", sa.Text, nullable=False),
    sa.Column("detail", sa.Text),
    sa.Column("health", sa.Text, nullable=False),
    sa.Column("admin", sa.Text, nullable=False),
    sa.Column("facts_id", BigId, sa.ForeignKey("device_facts.facts_id")),
    #: The CPU it shares with other devices now. No part of its facts: the number changes when its host boots.
    sa.Column("cpu_domain", sa.Text),
    sa.Column("condition", sa.JSON),
    #: The fencing token of the last claim; only rises.
    sa.Column("fence", sa.BigInteger, nullable=False),
    #: Everything of runs up to this token is gone from the phone.
    sa.Column("cleaned_fence", sa.BigInteger, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("seen_at", UtcTime, nullable=False),
    _one_of("presence", Presence),
    _one_of("health", Health),
    _one_of("admin", Admin),
)
# The exchange's look at the devices of its host.
sa.Index("ix_devices_host_id", devices.c.host_id)

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
    #: Cells that get no jobs, with their reasons.
    sa.Column("rejected", sa.JSON, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
)

cells = sa.Table(
    "cells",
    metadata,
    sa.Column("cell_id", BigId, primary_key=True),
    sa.Column("matrix_id", BigId, sa.ForeignKey("matrices.matrix_id"), nullable=False),
    sa.Column("cell_index", sa.Integer, nullable=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    sa.Column("variant_id", BigId, sa.ForeignKey("variants.variant_id"), nullable=False),
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
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text),
    sa.Column("code", sa.Text),
    sa.Column("message", sa.Text),
    #: The attempt whose report counts.
    sa.Column("attempt_id", BigId),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime),
    _one_of("kind", JobKind),
    _one_of("state", JobState),
    _one_of("outcome", Outcome),
    # A job ends with an outcome, and only an ended job has one.
    sa.CheckConstraint("(state = 'finished') = (outcome IS NOT NULL)", name="outcome_exactly_when_finished"),
    # A benchmark belongs to a cell of a matrix, a check to neither.
    sa.CheckConstraint(
        "(kind = 'benchmark') = (cell_id IS NOT NULL AND matrix_id IS NOT NULL)", name="benchmark_has_cell"
    ),
    # A cell runs once per round and repeat of its block.
    sa.UniqueConstraint("cell_id", "round", "repeat"),
)
# Claim: the head of a device's queue.
sa.Index(
    "ix_jobs_queue",
    jobs.c.device_id,
    jobs.c.priority.desc(),
    jobs.c.job_id,
    **_where("state = 'queued'"),
)
# One check of a device at a time.
sa.Index(
    "uq_jobs_one_open_check_per_device",
    jobs.c.device_id,
    unique=True,
    **_where("kind = 'check' AND state <> 'finished'"),
)
# Progress and results of a matrix.
sa.Index("ix_jobs_matrix_id", jobs.c.matrix_id, jobs.c.state)

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
    #: SHA-256 of the report that settled it.
    sa.Column("report_digest", sa.Text),
    sa.Column("claimed_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime),
    _one_of("state", AttemptState),
    _one_of("outcome", Outcome),
    # A fencing token is given once per device.
    sa.UniqueConstraint("device_id", "fence"),
)
# I1: the live attempt row is the device's lease.
sa.Index("uq_attempts_one_live_per_device", attempts.c.device_id, unique=True, **_where(_LIVE_SQL))
# I2: a job is tried by one attempt at a time.
sa.Index("uq_attempts_one_live_per_job", attempts.c.job_id, unique=True, **_where(_LIVE_SQL))
# Phones on one CPU would slow each other.
sa.Index(
    "uq_attempts_one_live_per_cpu",
    attempts.c.cpu_domain,
    unique=True,
    **_where(f"cpu_domain IS NOT NULL AND {_LIVE_SQL}"),
)
# The exchange's list of what a session owns.
sa.Index("ix_attempts_session_live", attempts.c.session_id, **_where(_LIVE_SQL))
# The tries of a job.
sa.Index("ix_attempts_job_id", attempts.c.job_id)

evidence = sa.Table(
    "evidence",
    metadata,
    sa.Column("evidence_id", BigId, primary_key=True),
    sa.Column("attempt_id", BigId, sa.ForeignKey("attempts.attempt_id"), nullable=False),
    sa.Column("report_digest", sa.Text, nullable=False),
    #: False when it came too late to decide anything; kept all the same.
    sa.Column("counted", sa.Boolean, nullable=False),
    #: The report's bytes, zlib-compressed.
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("received_at", UtcTime, nullable=False),
    # The same report again is the same evidence.
    sa.UniqueConstraint("attempt_id", "report_digest"),
)

series = sa.Table(
    "series",
    metadata,
    sa.Column("series_id", BigId, primary_key=True),
    sa.Column("series_digest", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("recipe", sa.JSON, nullable=False),
    sa.Column("backend", sa.Text, nullable=False),
    sa.Column("harness", sa.Text, nullable=False),
    #: Only what is not the harness's default, so that a new flag leaves old series whole.
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    # The digest is the identity.
    sa.UniqueConstraint("series_digest"),
)

measurements = sa.Table(
    "measurements",
    metadata,
    sa.Column("measurement_id", BigId, primary_key=True),
    sa.Column("job_id", BigId, sa.ForeignKey("jobs.job_id"), nullable=False),
    sa.Column("attempt_id", BigId, sa.ForeignKey("attempts.attempt_id"), nullable=False),
    sa.Column("cell_id", BigId, sa.ForeignKey("cells.cell_id"), nullable=False),
    sa.Column("series_id", BigId, sa.ForeignKey("series.series_id"), nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("repeat", sa.Integer, nullable=False),
    #: The versions of the series.
    sa.Column("variant_digest", sa.Text, nullable=False),
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
    #: The value: median of the samples, or the tool's mean.
    sa.Column("value_ns", sa.Double, nullable=False),
    sa.Column("mean_ns", sa.Double, nullable=False),
    sa.Column("min_ns", sa.BigInteger),
    sa.Column("max_ns", sa.BigInteger),
    sa.Column("p90_ns", sa.Double),
    sa.Column("scatter", sa.Double),
    #: farm.core.samples; empty kind `summary` has none.
    sa.Column("samples", sa.LargeBinary),
    sa.Column("parser_version", sa.Integer, nullable=False),
    sa.Column("measured_at", UtcTime, nullable=False),
    _one_of("quality", Quality),
    _one_of("kind", SampleKind),
    # An attempt yields one measurement.
    sa.UniqueConstraint("attempt_id"),
)
# I4: at most one accepted measurement per job.
sa.Index(
    "uq_measurements_one_accepted_per_job",
    measurements.c.job_id,
    unique=True,
    **_where("accepted"),
)
# Speedups: the measurements of a matrix's cells.
sa.Index("ix_measurements_cell_id", measurements.c.cell_id)
# History of one series.
sa.Index("ix_measurements_series_id", measurements.c.series_id, measurements.c.measured_at)

events = sa.Table(
    "events",
    metadata,
    sa.Column("event_id", BigId, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
    #: Who did it: `agent:HOST`, `farm`, `user`.
    sa.Column("actor", sa.Text, nullable=False),
    #: `noun_verbed`.
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("subject_id", sa.Text, nullable=False),
    sa.Column("from_state", sa.Text),
    sa.Column("to_state", sa.Text),
    sa.Column("cause", sa.Text),
)
# The story of one thing.
sa.Index("ix_events_subject", events.c.subject, events.c.subject_id, events.c.event_id)
