"""The event log: one row for each change of state."""

import sqlalchemy as sa

from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata

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
