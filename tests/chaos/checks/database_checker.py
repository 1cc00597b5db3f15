"""What must be in a farm's database when all went well, whatever was killed; beyond `invariants`."""

import hashlib
import sqlite3
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any


class Ledger:
    """The tables of a farm that may still run, as they were when this was made."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(path, timeout=10)) as database:
            database.row_factory = sqlite3.Row
            database.execute("BEGIN")
            self.jobs = _rows(database, "jobs", "job_id")
            self.attempts = _rows(database, "attempts", "attempt_id")
            self.measurements = _rows(database, "measurements", "measurement_id")
            self.evidence = _rows(database, "evidence", "evidence_id")

    def unfinished(self) -> list[int]:
        """Jobs that are still to do."""
        return [job["job_id"] for job in self.jobs if job["state"] != "finished"]

    def check_jobs_succeeded(self, matrix_id: int, count: int) -> None:
        """No job is lost, and each has one accepted measurement, of its current attempt (I4, I5)."""
        own = [job for job in self.jobs if job["matrix_id"] == matrix_id]
        assert len(own) == count
        assert Counter((job["state"], job["outcome"]) for job in own) == {("finished", "succeeded"): count}
        accepted = Counter(row["job_id"] for row in self.measurements if row["accepted"])
        assert accepted == {job["job_id"]: 1 for job in own}
        attempt_by_job = {job["job_id"]: job["attempt_id"] for job in own}
        for row in self.measurements:
            assert row["attempt_id"] == attempt_by_job[row["job_id"]]

    def check_first_attempts_sufficed(self) -> None:
        """Every job was tried once, and every attempt was settled."""
        tried = Counter(row["job_id"] for row in self.attempts)
        assert set(tried.values()) == {1}
        assert {row["state"] for row in self.attempts} == {"finished"}

    def check_evidence(self) -> None:
        """Each finished attempt has one report that counted, with the digest it was settled by."""
        counted = Counter(row["attempt_id"] for row in self.evidence if row["counted"])
        finished = {row["attempt_id"]: row for row in self.attempts if row["state"] == "finished"}
        assert counted == dict.fromkeys(finished, 1)
        for row in self.evidence:
            digest = hashlib.sha256(zlib.decompress(row["body"])).hexdigest()
            assert digest == row["report_digest"]
            assert not row["counted"] or digest == finished[row["attempt_id"]]["report_digest"]


def _rows(database: sqlite3.Connection, table: str, key: str) -> Sequence[Any]:
    return database.execute(f"SELECT * FROM {table} ORDER BY {key}").fetchall()
