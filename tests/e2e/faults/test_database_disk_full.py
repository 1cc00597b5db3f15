"""A farm whose database cannot be written: it answers what it can, refuses the rest for now, and recovers."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from farm.database.engine import Database, sqlite_url
from tests.support.fakes import stand_in_model
from tests.support.farm.http_farm import http_farm
from tests.support.farm.processes import FarmProcess, eventually, running_farm
from tests.support.faults.disk_faults import no_file_grows_beyond
from tests.support.invariants.invariants import check_invariants


def token_asked(http: httpx.Client) -> httpx.Response:
    """A small write."""
    return http.post("/api/v1/tokens", json={})


@pytest.mark.invariant("I10", "I17")
@pytest.mark.fault(41)
def test_a_farm_on_a_full_disk_answers_reads_refuses_writes_for_now_and_goes_on_automatically(
    tmp_path: Path,
) -> None:
    farm = FarmProcess(tmp_path / "farm", environment={"FARM_REAP_EVERY_S": "0.1"})
    with running_farm(farm), httpx.Client(base_url=farm.url, trust_env=False, timeout=30) as http:
        wal = farm.database_path.with_name("farm.sqlite3-wal")
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        with no_file_grows_beyond(farm.pid, wal.stat().st_size // 2):
            refused = token_asked(http)
            assert (refused.status_code, refused.json()["code"]) == (503, "farm.busy")
            assert refused.headers["Retry-After"]
            assert refused.json()["transient"]
            assert len(http.get("/api/v1/variants").json()) == 2
            assert http.get("/api/v1/health").status_code == 200
            # Its periodic duties are put off, and nothing else.
            eventually(lambda: "tick_failed" in farm.log.read_text(), "a tick fails")
            farm.check_alive()
        assert token_asked(http).is_success
        check_invariants(farm.database_path)


@pytest.mark.long
@pytest.mark.fault(41)
def test_a_farm_starts_on_a_full_disk_to_be_able_to_tell(tmp_path: Path) -> None:
    farm = FarmProcess(tmp_path / "farm", environment={"FARM_REAP_EVERY_S": "0.2"})
    with running_farm(farm), httpx.Client(base_url=farm.url, trust_env=False, timeout=30) as http:
        farm.stop()
        farm.database.engine.dispose()
        # Room for SQLite's index of its log (32 KiB), and for hardly more than one page of the log.
        farm._base = ["/bin/sh", "-c", 'ulimit -f 66; exec "$@"', "sh", *farm._base]
        farm.start()
        assert http.get("/api/v1/health").status_code == 200
        assert http.get("/api/v1/variants").json() == []
        refused = [token_asked(http) for _ in range(5)][-1]
        assert (refused.status_code, refused.json()["code"]) == (503, "farm.busy")


def test_a_farm_that_cannot_store_its_own_programs_starts(tmp_path: Path) -> None:
    with http_farm(tmp_path / "farm", disk_reserve_bytes=2**60) as farm:
        assert farm.http.get("/api/v1/health").json() == {"status": "ok"}


@pytest.mark.fault(40)
def test_a_locked_database_is_said_with_when_to_try_again(tmp_path: Path) -> None:
    path = tmp_path / "farm" / "farm.sqlite3"
    with http_farm(tmp_path / "farm") as farm, closing(Database(sqlite_url(path), busy_ms=50)) as impatient:
        farm.app.state.context = replace(farm.context, database=impatient)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = token_asked(farm.http)
            assert (refused.status_code, refused.json()["code"]) == (503, "farm.busy")
            assert refused.headers["Retry-After"]
            assert farm.http.get("/api/v1/devices").json() == []
            other.execute("ROLLBACK")
        assert token_asked(farm.http).is_success
