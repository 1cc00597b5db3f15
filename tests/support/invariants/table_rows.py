"""All rows of a farm's database that promises are about, by table."""

from typing import Any

from sqlalchemy.engine import Connection

Row = dict[str, Any]


class FarmRows:
    """As they stand in one snapshot; keys are texts, as events have them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.events = self._rows("events", "event_id")
        self.matrices = self._by("matrices", "matrix_id")
        self.attempts = self._by("attempts", "attempt_id")
        self.jobs = self._by("jobs", "job_id")
        self.hosts = self._by("hosts", "host_id")
        self.sessions = self._by("sessions", "session_id")
        self.incidents = self._by("incidents", "incident_id")
        self.alarms = self._by("alarms", "alarm_id")
        self.devices = self._by("devices", "device_id")
        self.device_actions = self._by("device_actions", "device_action_id")
        self.join_tokens = self._by("join_tokens", "token_hash", length=12)
        self.access_tokens = self._by("access_tokens", "token_hash", length=12)
        self.leader_leases = self._by("leader_leases", "lease")
        self.epochs = self._by("database_epochs", "epoch")
        self.measurements = self._rows("measurements", "measurement_id")
        self.evidence = self._rows("evidence", "evidence_id")
        self.programs = {row["digest"] for row in self._rows("programs", "program_id")}
        self.artifacts = self._by("artifacts", "digest")

    def _rows(self, table: str, key: str) -> list[Row]:
        found = self._connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY {key}")
        return [dict(row) for row in found.mappings()]

    def _by(self, table: str, key: str, *, length: int | None = None) -> dict[str, Row]:
        return {str(row[key])[:length]: row for row in self._rows(table, key)}
