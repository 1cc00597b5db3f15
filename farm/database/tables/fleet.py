"""Hosts, the sessions of their agents, and devices."""

import sqlalchemy as sa

from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import HostState, SessionState
from farm.core.operations.role import Role
from farm.core.upkeep.device_action import DeviceActionKind
from farm.database.tables.columns import NO_NUMBER_REUSE, BigId, UtcTime, metadata, one_of, where

hosts = sa.Table(
    "hosts",
    metadata,
    sa.Column("host_id", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    #: New phones of this host become active without an operator.
    sa.Column("auto_admit", sa.Boolean, nullable=False),
    sa.Column("credential_hash", sa.Text, nullable=False),
    #: Where its adb server listens, on that machine's loopback.
    sa.Column("adb_port", sa.Integer),
    #: How many runs it may have at once; None: as many as it has phones.
    sa.Column("max_runs", sa.Integer),
    sa.Column("created_at", UtcTime, nullable=False),
    one_of("state", HostState),
    # A host that is to have no work is drained, which says so.
    sa.CheckConstraint("max_runs > 0", name="max_runs_positive"),
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

access_tokens = sa.Table(
    "access_tokens",
    metadata,
    # Only the hash is kept: SHA-256 of 256 random bits.
    sa.Column("token_hash", sa.Text, primary_key=True),
    #: Whom it proves: the actor of events.
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    #: None: valid until it is revoked.
    sa.Column("expires_at", UtcTime),
    sa.Column("revoked_at", UtcTime),
    one_of("role", Role),
)

incidents = sa.Table(
    "incidents",
    metadata,
    sa.Column("incident_id", BigId, primary_key=True),
    sa.Column("host_id", sa.Text, sa.ForeignKey("hosts.host_id"), nullable=False),
    #: `correlated_failures`, ...: farm.core.checks.incident.
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("began_at", UtcTime, nullable=False),
    sa.Column("ended_at", UtcTime),
    #: The phones it hit; none of them is blamed for what happened then (I15).
    sa.Column("devices", sa.JSON, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    **NO_NUMBER_REUSE,
)
# One incident of a kind at a time: what else happens then is part of it.
sa.Index(
    "uq_incidents_one_open_per_kind",
    incidents.c.host_id,
    incidents.c.kind,
    unique=True,
    **where("ended_at IS NULL"),
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
    sa.Column("heartbeat_at", UtcTime, nullable=False),
    one_of("state", SessionState),
    # An epoch is used once.
    sa.UniqueConstraint("host_id", "epoch"),
    **NO_NUMBER_REUSE,
)
# One life of an agent at a time.
sa.Index(
    "uq_sessions_one_live_per_host",
    sessions.c.host_id,
    unique=True,
    **where("state IN ('live', 'silent')"),
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
    #: Where the ladder of recovery stands, while it is climbed.
    sa.Column("recovery", sa.JSON(none_as_null=True)),
    #: What its settings are that a phone on a shelf needs, and what was set.
    sa.Column("settings_record", sa.JSON(none_as_null=True)),
    #: The operator's name for it.
    sa.Column("label", sa.Text),
    sa.Column("tags", sa.JSON, nullable=False),
    #: Its number among the phones of its device model, from 1; never given again.
    sa.Column("unit", sa.Integer),
    #: Since when its golden runs are compared with its own alone: an operator accepted what it takes.
    sa.Column("rebaselined_at", UtcTime),
    #: Out of the pool for a person, until then at the latest.
    sa.Column("reserved_until", UtcTime),
    sa.Column("reserved_by", sa.Text),
    #: The fencing token of the last claim; only rises.
    sa.Column("fence", sa.BigInteger, nullable=False),
    #: Everything of runs up to this token is gone from the phone.
    sa.Column("cleaned_fence", sa.BigInteger, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("seen_at", UtcTime, nullable=False),
    one_of("presence", Presence),
    one_of("health", Health),
    one_of("admin", Admin),
    # A hold has an end and an owner.
    sa.CheckConstraint("(reserved_until IS NULL) = (reserved_by IS NULL)", name="reservation_has_owner"),
    # A label names one phone.
    sa.UniqueConstraint("label"),
)
# The exchange's look at the devices of its host.
sa.Index("ix_devices_host_id", devices.c.host_id)

device_actions = sa.Table(
    "device_actions",
    metadata,
    sa.Column("device_action_id", BigId, primary_key=True),
    sa.Column("device_id", sa.Text, sa.ForeignKey("devices.device_id"), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("requested_by", sa.Text, nullable=False),
    sa.Column("requested_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime),
    #: What was done, in words, or why nothing was.
    sa.Column("done", sa.Text),
    sa.Column("error", sa.Text),
    #: What a clean-up gave back to the phone.
    sa.Column("freed_bytes", sa.BigInteger),
    one_of("kind", DeviceActionKind),
    # An errand ends well or not, and only an ended one says how.
    sa.CheckConstraint(
        "(finished_at IS NULL AND done IS NULL AND error IS NULL)"
        " OR (finished_at IS NOT NULL AND (done IS NULL) <> (error IS NULL))",
        name="finished_exactly_one_way",
    ),
    **NO_NUMBER_REUSE,
)
# Asking twice is asking once; and the exchange's look at what is to be done.
sa.Index(
    "uq_device_actions_one_open_per_kind",
    device_actions.c.device_id,
    device_actions.c.kind,
    unique=True,
    **where("finished_at IS NULL"),
)
