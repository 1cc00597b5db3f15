"""Rows for tests of the store, written past the services."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.database import tables

NOW = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)
HOST = "bench-1"
PHONE = "phone-1"
DIGEST = "a" * 64

SESSION = {
    "host_id": HOST,
    "epoch": 1,
    "state": "live",
    "boot_id": "boot",
    "agent_version": "test",
    "exchange_seq": 0,
    "opened_at": NOW,
    "heartbeat_at": NOW,
}
DEVICE = {
    "host_id": HOST,
    "serial": "serial",
    "presence": "online",
    "health": "good",
    "admin": "active",
    "fence": 0,
    "cleaned_fence": 0,
    "tags": [],
    "created_at": NOW,
    "seen_at": NOW,
}
ARTIFACT = {"digest": DIGEST, "size_bytes": 1, "created_at": NOW, "used_at": NOW}
PROGRAM = {
    "harness": "h",
    "abi": "x86_64",
    "digest": DIGEST,
    "entry": "h",
    "env": {},
    "command": [],
    "missing_flags": [],
    "created_at": NOW,
    "chosen_at": NOW,
}
MATRIX = {
    "name": "m",
    "harness": "h",
    "spec": {"name": "m", "harness": "h", "devices": [{}]},
    "rounds": 5,
    "seed": 1,
    "rejected_count": 0,
}
CELL = {
    "matrix_id": 1,
    "device_id": PHONE,
    "variant_id": 1,
    "program_id": 1,
    "backend": "cpu",
    "settings": {},
    "replica": 1,
    "label": "float32",
}
JOB = {
    "kind": "benchmark",
    "device_id": PHONE,
    "matrix_id": 1,
    "cell_id": 1,
    "round": 1,
    "repeat": 0,
    "priority": 0,
    "state": "queued",
    "created_at": NOW,
}
CHECK = {**JOB, "kind": "check", "matrix_id": None, "cell_id": None}
ATTEMPT = {
    "job_id": 1,
    "device_id": PHONE,
    "host_id": HOST,
    "session_id": 1,
    "fence": 1,
    "state": "claimed",
    "plan": {},
    "claimed_at": NOW,
}
MEASUREMENT = {
    "job_id": 1,
    "attempt_id": 1,
    "cell_id": 1,
    "series_id": 1,
    "round": 1,
    "repeat": 0,
    "variant_digest": DIGEST,
    "program_digest": DIGEST,
    "accepted": True,
    "quality": "valid",
    "quality_reasons": [],
    "actual_backend": "cpu",
    "accelerator": "cpu",
    "proof": "it said so",
    "kind": "samples",
    "sample_count": 1,
    "value_ns": 1.0,
    "mean_ns": 1.0,
    "metrics": [],
    "parser_version": 1,
    "measured_at": NOW,
}
SERIES = {
    "series_digest": DIGEST,
    "model": "m",
    "recipe": {},
    "backend": "cpu",
    "harness": "h",
    "settings": {},
    "device_id": PHONE,
}
IMPORT = {
    "digest": "ab" * 32,
    "name": "profile.json",
    "size_bytes": 10,
    "format": "ai-hub",
    "notes": [],
    "results": 1,
    "imported_at": NOW,
    "imported_by": "user:ann",
}
EXTERNAL_RESULT = {
    "import_id": 1,
    "position": 0,
    "tool": "Qualcomm AI Hub",
    "metric": "latency",
    "value": 1.0,
    "statistic": "mean",
    "settings": {},
}


def add(connection: Connection, table: sa.Table, row: dict[str, Any], **changes: Any) -> None:
    """Insert one row."""
    connection.execute(table.insert().values({**row, **changes}))


ACCESS_TOKEN = {
    "token_hash": "h",
    "name": "ann",
    "role": "viewer",
    "created_at": NOW,
    "created_by": "farm",
}
INCIDENT = {"host_id": HOST, "kind": "correlated_failures", "began_at": NOW, "devices": [], "cause": "hub"}


def add_rows(connection: Connection) -> None:
    """The rows that others refer to, and one queued job."""
    host = {"host_id": HOST, "state": "active", "auto_admit": True, "credential_hash": "x", "created_at": NOW}
    add(connection, tables.hosts, host)
    add(connection, tables.sessions, SESSION)
    add(connection, tables.devices, DEVICE, device_id=PHONE)
    add(connection, tables.devices, DEVICE, device_id="phone-2")
    add(connection, tables.artifacts, ARTIFACT)
    add(
        connection,
        tables.variants,
        {
            "name": "v",
            "model": "m",
            "recipe_digest": DIGEST,
            "digest": DIGEST,
            "manifest": {},
            "created_at": NOW,
        },
    )
    add(connection, tables.variant_files, {"variant_id": 1, "path": "", "digest": DIGEST})
    add(connection, tables.programs, PROGRAM)
    add(
        connection,
        tables.program_files,
        {"program_id": 1, "path": "h", "digest": DIGEST, "executable": True},
    )
    add(connection, tables.matrices, MATRIX, created_at=NOW)
    add(connection, tables.cells, CELL, cell_index=0)
    add(connection, tables.jobs, JOB)
    add(connection, tables.series, SERIES)
