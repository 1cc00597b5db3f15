"""Room on the farm over HTTP and from the command line: what is told, refused and swept."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy.engine import Connection

from farm.cli.shell.main import main
from farm.client.farm_client import FarmClient
from farm.core.base.ids import Digest, digest_of
from farm.core.errors import ArtifactExpired, FarmDiskFull
from farm.core.operations.event import DeviceEvent
from farm.daemon import data_folder_lock
from farm.database.tables import events
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.processes import FarmProcess, eventually, running_farm
from tests.support.farm.service_fixture import model_file

_DAY_S = 86_400
CONTENT = b"a file nobody needs" * 1000


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    """A farm that may keep nothing but what it needs."""
    with http_farm(tmp_path / "data", blobs_limit_bytes=0) as served:
        yield served


def upload(farm: HttpFarm, tmp_path: Path, content: bytes = CONTENT) -> Digest:
    path = tmp_path / "file"
    path.write_bytes(content)
    with FarmClient(farm.url) as client:
        client.upload(path, digest_of(content))
    return digest_of(content)


def make_old(farm: HttpFarm, digest: Digest) -> None:
    """As if nobody had used a file for a day."""
    farm.context.database.write(
        lambda c: c.exec_driver_sql(
            "UPDATE artifacts SET used_at = used_at - ? WHERE digest = ?", (_DAY_S * 10**6, digest)
        )
    )


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


def test_an_expired_file_is_gone_with_a_reason_and_can_be_sent_again(farm: HttpFarm, tmp_path: Path) -> None:
    digest = upload(farm, tmp_path)
    make_old(farm, digest)
    assert farm.http.post("/api/v1/storage/sweep").json()["artifacts"] == 1
    answer = farm.http.get(f"/api/v1/blobs/{digest}")
    assert answer.status_code == 410
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == ArtifactExpired.code
    assert "farm variant add" in answer.json()["hint"]
    assert farm.http.head(f"/api/v1/blobs/{digest}").status_code == 410
    upload(farm, tmp_path)
    assert farm.http.get(f"/api/v1/blobs/{digest}").content == CONTENT


def test_a_file_that_is_gone_from_the_disk_is_sent_again(farm: HttpFarm, tmp_path: Path) -> None:
    digest = upload(farm, tmp_path)
    farm.context.blobs.path(digest).unlink()
    assert farm.http.get(f"/api/v1/blobs/{digest}").status_code == 404
    upload(farm, tmp_path)
    assert farm.http.get(f"/api/v1/blobs/{digest}").content == CONTENT


def test_an_upload_that_would_not_leave_the_reserve_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with http_farm(tmp_path / "data", disk_reserve_bytes=2**60) as farm:
        with pytest.raises(FarmDiskFull, match="no space"):
            upload(farm, tmp_path, os.urandom(8 * 1024 * 1024))
        answer = farm.http.put(f"/api/v1/blobs/{digest_of(b'x')}", content=b"x")
        assert (answer.status_code, answer.json()["code"]) == (507, FarmDiskFull.code)
        assert "FARM_BLOBS_LIMIT_BYTES" in answer.json()["hint"]
        assert list((farm.context.blobs.folder / "incoming").iterdir()) == []


def test_what_takes_the_room_is_told_by_kind_and_use(farm: HttpFarm, tmp_path: Path) -> None:
    upload(farm, tmp_path, model_file("torchscript", marker="m"))
    view = farm.http.get("/api/v1/storage").json()
    uses = {(row["kind"], row["use"]): row["files"] for row in view["artifacts"]}
    assert uses == {("own", "needed"): 3, ("unregistered", "unused"): 1}
    assert view["database_bytes"] > 0
    assert view["limits"]["blobs_limit_bytes"] == 0
    assert view["next_sweep"]["artifacts"] == []


def test_a_dry_run_says_what_goes_and_lets_nothing_go(
    farm: HttpFarm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_URL", farm.url)
    digest = upload(farm, tmp_path)
    make_old(farm, digest)
    assert run("storage", "sweep", "--dry-run", "--json") == 0
    (going,) = json.loads(capsys.readouterr().out)["artifacts"]
    assert going["digest"] == digest
    assert run("storage", "sweep", "--dry-run") == 0
    printed = capsys.readouterr()
    assert digest[:12] in printed.out
    assert printed.err == "the next sweep: 1 artifact (19.0 kB)\n"
    assert farm.http.get(f"/api/v1/blobs/{digest}").status_code == 200
    assert run("storage", "sweep") == 0
    assert "swept: 1 artifact (19.0 kB); 19.0 kB moved to the trash" in capsys.readouterr().err
    assert farm.http.get(f"/api/v1/blobs/{digest}").status_code == 410
    assert run("storage", "show") == 0
    assert "trash: 1 removed file (19.0 kB), each deleted after 7 days" in capsys.readouterr().out


def test_the_storage_is_shown_in_words(
    farm: HttpFarm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_URL", farm.url)
    assert run("storage", "show") == 0
    said = capsys.readouterr().out
    in_one_line = " ".join(said.split())
    assert "limits artifacts: 0 B; output: none; history: 1095 days; uploads leave 1.07 GB" in in_one_line
    assert "own        needed      3" in said
    assert "the next sweep: nothing to do" in said
    assert run("storage", "show", "--json") == 0
    assert json.loads(capsys.readouterr().out)["expired_artifacts"] == 0


def test_limits_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_EVIDENCE_KEEP_DAYS", "30")
    monkeypatch.setenv("FARM_EVIDENCE_LIMIT_BYTES", "1000000")
    with http_farm(tmp_path / "data") as farm:
        limits = farm.http.get("/api/v1/storage").json()["limits"]
    assert limits == {
        "blobs_limit_bytes": None,
        "evidence_keep_days": 30,
        "evidence_limit_bytes": 1_000_000,
        "history_keep_days": 1095,
        "disk_reserve_bytes": 1024**3,
    }


def test_a_stopped_farms_database_returns_what_is_free_inside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    with http_farm(folder) as farm:
        farm.context.database.write(_fill_and_empty)
        assert farm.http.get("/api/v1/storage").json()["database_free_bytes"] > 900_000
    assert run("storage", "compact", "--data", str(folder), "--json") == 0
    assert json.loads(capsys.readouterr().out)["freed_bytes"] > 900_000
    with http_farm(folder) as farm:
        assert farm.http.get("/api/v1/storage").json()["database_free_bytes"] == 0


def _fill_and_empty(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE ballast (body BLOB)")
    connection.exec_driver_sql("INSERT INTO ballast VALUES (zeroblob(1000000))")
    connection.exec_driver_sql("DELETE FROM ballast")
    connection.exec_driver_sql("DROP TABLE ballast")


def test_a_database_in_use_is_not_rewritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"
    with http_farm(folder), data_folder_lock(folder):
        assert run("storage", "compact", "--data", str(folder)) == 2
    said = capsys.readouterr().err
    assert "a farm already runs in" in said
    assert "hint: stop that one first" in said


def test_there_must_be_a_farm_to_compact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("storage", "compact", "--data", str(tmp_path / "nowhere")) == 2
    assert "set its location with --data" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.long
def test_a_running_farm_sweeps_automatically(tmp_path: Path) -> None:
    farm = FarmProcess(tmp_path / "farm", environment={"FARM_SWEEP_EVERY_S": "0.1"})
    with running_farm(farm), farm.client() as client:
        farm.blobs.path(farm.put_artifact(CONTENT)).unlink()
        eventually(lambda: client.storage().expired_artifacts == 1, "the loss is noticed")


def add_old_events(connection: Connection) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=4 * 365)
    row = {"at": long_ago, "actor": "farm", "kind": DeviceEvent.RECOVERY_TRIED, "subject": "device"}
    connection.execute(events.insert(), [{**row, "subject_id": f"phone-{index}"} for index in range(3)])


def test_a_dry_run_counts_old_history(
    farm: HttpFarm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_URL", farm.url)
    farm.context.database.write(add_old_events)
    assert run("storage", "sweep", "--dry-run") == 0
    assert capsys.readouterr().err == "the next sweep: 3 old events\n"
    assert run("storage", "sweep", "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["events"] == 3
    assert run("storage", "sweep") == 0
    assert "swept: 3 old events" in capsys.readouterr().err
