"""Leader leases of the farm processes, database epochs, events and alarms."""

import sqlalchemy as sa

from farm.core.operations.alarm import AlarmKind
from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata, one_of, where

leader_leases = sa.Table(
    "leader_leases",
    metadata,
    # A lease has one holder at a time.
    sa.Column("lease", sa.Text, primary_key=True),
    #: The name of the farm process; unique to each of its runs.
    sa.Column("holder", sa.Text, nullable=False),
    #: Any process may acquire it from then on.
    sa.Column("expires_at", UtcTime, nullable=False),
)

database_epochs = sa.Table(
    "database_epochs",
    metadata,
    #: Random; a restored database gets a new one, because it may lack the latest changes.
    sa.Column("epoch", sa.Text, primary_key=True),
    sa.Column("began_at", UtcTime, nullable=False),
    #: `created` or `restored from ...`.
    sa.Column("cause", sa.Text, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("event_id", BigId, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
    #: `agent:HOST`, `farm` or `user:NAME`.
    sa.Column("actor", sa.Text, nullable=False),
    #: `noun_verbed`.
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("subject_id", sa.Text, nullable=False),
    sa.Column("from_state", sa.Text),
    sa.Column("to_state", sa.Text),
    sa.Column("cause", sa.Text),
    **NO_NUMBER_REUSE,
)
# The history of one subject.
sa.Index("ix_events_subject", events.c.subject, events.c.subject_id, events.c.event_id)
# The actions of one actor.
sa.Index("ix_events_actor", events.c.actor, events.c.event_id)
# Events of one kind.
sa.Index("ix_events_kind", events.c.kind, events.c.event_id)
# Events since a time.
sa.Index("ix_events_at", events.c.at)
# Usage: when a fact of a device or host changed, within a week and the last time before it.
sa.Index(
    "ix_events_facts",
    events.c.subject_id,
    events.c.kind,
    events.c.at,
    **where("subject IN ('device', 'host')"),
)

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
    #: The time at which the condition ended, or an operator acknowledged it.
    sa.Column("cleared_at", UtcTime),
    sa.Column("cleared_by", sa.Text),
    #: The time at which the operators' command took it, and the state of its retries until then.
    sa.Column("notified_at", UtcTime),
    sa.Column("notify_attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("notify_again_at", UtcTime),
    one_of("kind", AlarmKind),
    # A cleared alarm has the actor that cleared it.
    sa.CheckConstraint("(cleared_at IS NULL) = (cleared_by IS NULL)", name="cleared_has_actor"),
    **NO_NUMBER_REUSE,
)
# The newest alarms, or those since a time.
sa.Index("ix_alarms_raised_at", alarms.c.raised_at, alarms.c.alarm_id)
# A condition raises one alarm, however often it is detected.
sa.Index(
    "uq_alarms_one_open_per_kind",
    alarms.c.kind,
    alarms.c.subject,
    alarms.c.subject_id,
    unique=True,
    **where("cleared_at IS NULL"),
)
