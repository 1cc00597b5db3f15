"""What happened: one row for each change of state."""

import sqlalchemy as sa

from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata

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
    **NO_NUMBER_REUSE,
)
# The story of one thing.
sa.Index("ix_events_subject", events.c.subject, events.c.subject_id, events.c.event_id)
# What somebody did.
sa.Index("ix_events_actor", events.c.actor, events.c.event_id)
# Everything of a kind.
sa.Index("ix_events_kind", events.c.kind, events.c.event_id)
# What happened since a moment.
sa.Index("ix_events_at", events.c.at)
