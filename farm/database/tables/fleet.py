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
    #: True if new devices of this host are admitted automatically.
    sa.Column("auto_admit", sa.Boolean, nullable=False),
    sa.Column("credential_hash", sa.Text, nullable=False),
    #: The address of its adb server on that machine, in the notation of `adb -L`; None: not reported.
    sa.Column("adb_address", sa.Text),
    #: The most concurrent runs; None: as many as it has devices.
    sa.Column("max_runs", sa.Integer),
    sa.Column("created_at", UtcTime, nullable=False),
    #: How far its clock was ahead of the farm's, and how far at most that may be wrong; None: not compared.
    sa.Column("clock_ahead_s", sa.Double),
    sa.Column("clock_uncertainty_s", sa.Double),
    sa.Column("clock_compared_at", UtcTime),
    one_of("state", HostState),
    # A comparison is recorded as a whole.
    sa.CheckConstraint(
        "(clock_ahead_s IS NULL) = (clock_compared_at IS NULL)"
        " AND (clock_uncertainty_s IS NULL) = (clock_compared_at IS NULL)",
        name="clock_comparison_is_whole",
    ),
    # A host without work is drained instead.
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
    #: The only host that may join with it; None: any.
    sa.Column("host", sa.Text),
)

access_tokens = sa.Table(
    "access_tokens",
    metadata,
    # Only the hash is stored: SHA-256 of 256 random bits.
    sa.Column("token_hash", sa.Text, primary_key=True),
    #: The actor of events.
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    #: None: valid until it is revoked.
    sa.Column("expires_at", UtcTime),
    sa.Column("revoked_at", UtcTime),
    #: To the minute; None: not yet.
    sa.Column("last_used_at", UtcTime),
    one_of("role", Role),
)

#: Browsers that signed in with an access token; only the hash of the cookie is stored.
page_sessions = sa.Table(
    "page_sessions",
    metadata,
    sa.Column("session_hash", sa.Text, primary_key=True),
    sa.Column("token_hash", sa.Text, sa.ForeignKey("access_tokens.token_hash"), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    #: By signing out.
    sa.Column("ended_at", UtcTime),
)
sa.Index("ix_page_sessions_expires_at", page_sessions.c.expires_at)

incidents = sa.Table(
    "incidents",
    metadata,
    sa.Column("incident_id", BigId, primary_key=True),
    sa.Column("host_id", sa.Text, sa.ForeignKey("hosts.host_id"), nullable=False),
    #: farm.core.devices.host_state.IncidentKind.
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("began_at", UtcTime, nullable=False),
    sa.Column("ended_at", UtcTime),
    #: The affected devices; none of them is blamed for failures during the incident (I15).
    sa.Column("devices", sa.JSON, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    **NO_NUMBER_REUSE,
)
# A host has one open incident of a kind at a time; further failures join it.
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
    #: The highest applied exchange; a lower one changes nothing.
    sa.Column("exchange_seq", sa.BigInteger, nullable=False),
    sa.Column("opened_at", UtcTime, nullable=False),
    sa.Column("heartbeat_at", UtcTime, nullable=False),
    one_of("state", SessionState),
    # An epoch is used once.
    sa.UniqueConstraint("host_id", "epoch"),
    **NO_NUMBER_REUSE,
)
# A host has one open session at a time.
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
    #: What devices are grouped by, as these facts say it: to parse the facts of a thousand devices takes
    #: several times as long as to read their points. None of all four before facts were reported.
    sa.Column("device_model", sa.Text),
    sa.Column("soc", sa.Text),
    sa.Column("android", sa.Text),
    sa.Column("virtual", sa.Boolean),
    #: The CPU that it shares with other devices; not part of its facts, because it changes when its host
    #: reboots.
    sa.Column("cpu_domain", sa.Text),
    sa.Column("condition", sa.JSON),
    #: The state of its recovery episode, if one is open.
    sa.Column("recovery", sa.JSON(none_as_null=True)),
    #: The last check of its device settings, and the provisioned values.
    sa.Column("settings_record", sa.JSON(none_as_null=True)),
    #: The operator's name for it.
    sa.Column("label", sa.Text),
    sa.Column("tags", sa.JSON, nullable=False),
    #: Its number among the devices of its model, from 1; never reused.
    sa.Column("unit", sa.Integer),
    #: The time an operator re-baselined it: since then its reference runs are compared with its own only.
    sa.Column("rebaselined_at", UtcTime),
    #: The end of its reservation, at the latest.
    sa.Column("reserved_until", UtcTime),
    sa.Column("reserved_by", sa.Text),
    #: The fencing token of the last claim; it never decreases.
    sa.Column("fence", sa.BigInteger, nullable=False),
    #: All files and processes of runs up to this token are removed from the device.
    sa.Column("cleaned_fence", sa.BigInteger, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("seen_at", UtcTime, nullable=False),
    one_of("presence", Presence),
    one_of("health", Health),
    one_of("admin", Admin),
    # A reservation has an end and an owner.
    sa.CheckConstraint("(reserved_until IS NULL) = (reserved_by IS NULL)", name="reservation_has_owner"),
    # A label names one device.
    sa.UniqueConstraint("label"),
)
# The exchange: the devices of a host.
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
    #: The result as text, or the error.
    sa.Column("done", sa.Text),
    sa.Column("error", sa.Text),
    #: The space that a clean-up freed on the device.
    sa.Column("freed_bytes", sa.BigInteger),
    one_of("kind", DeviceActionKind),
    # A finished action has a result or an error, an open one has neither.
    sa.CheckConstraint(
        "(finished_at IS NULL AND done IS NULL AND error IS NULL)"
        " OR (finished_at IS NOT NULL AND (done IS NULL) <> (error IS NULL))",
        name="finished_exactly_one_way",
    ),
    **NO_NUMBER_REUSE,
)
# A repeated request is one action; and the exchange: the open actions of a device.
sa.Index(
    "uq_device_actions_one_open_per_kind",
    device_actions.c.device_id,
    device_actions.c.kind,
    unique=True,
    **where("finished_at IS NULL"),
)
# Usage: the actions of a week.
sa.Index("ix_device_actions_requested_at", device_actions.c.requested_at)
