"""`farm reparse`, against a farm whose measurements an older adapter has read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from farm.cli.shell.main import main
from farm.core.base.ids import MatrixId
from farm.harness.torch.speed_benchmark_torch import SpeedBenchmarkTorch
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import FarmRig

NEWER = SpeedBenchmarkTorch().parser_version


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    folder = tmp_path / "data"
    folder.mkdir()
    _measure(folder)
    with http_farm(folder) as served:
        monkeypatch.setenv("FARM_URL", served.url)
        yield served


def _measure(folder: Path) -> MatrixId:
    rig = FarmRig(folder)
    rig.variant("float32")
    host = rig.host()
    host.plug_in("phone-1")
    host.earn_health()
    matrix = rig.submit(
        axes={"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"},
        baseline=None,
        rounds=2,
    )
    host.run()
    older = f"UPDATE measurements SET parser_version = {NEWER - 1}, value_ns = 5e9"
    rig.write(lambda connection: connection.exec_driver_sql(older))
    rig.close()
    return matrix


def run(*words: object) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def values(farm: HttpFarm) -> list[float]:
    """Of the measurements that count."""

    def query(connection: Connection) -> list[float]:
        rows = connection.exec_driver_sql("SELECT value_ns FROM measurements WHERE accepted")
        return [float(row[0]) for row in rows]

    return farm.context.database.read(query)


def document(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    capsys.readouterr()
    assert run("reparse", *words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_dry_run_tells_what_would_change_and_changes_nothing(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("reparse", "--dry-run") == 0
    said = capsys.readouterr()
    assert "2 would be changed" in said.err
    assert "`--yes` applies the changes" in said.err
    assert f"{NEWER - 1} to {NEWER}" in said.out
    assert values(farm) == [5e9, 5e9]


@pytest.mark.parametrize("words", [("--yes",), ()], ids=["told to", "a script"])
def test_it_is_done_where_it_is_said_or_no_one_can_be_asked(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    done = document(capsys, *words)
    assert not done["dry_run"]
    assert [change["kind"] for change in done["changes"]] == ["changed", "changed"]
    assert values(farm) == [1e6, 1e6]
    assert document(capsys, "--yes")["changes"] == []


def test_a_selection_of_nothing_does_nothing(farm: HttpFarm, capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "--yes", "--harness", "benchmark_model")["changes"] == []
    assert values(farm) == [5e9, 5e9]


def test_a_matrix_that_is_not_there_is_said_to_be_missing(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("reparse", "--matrix", 99) == 2
    assert "matrix 99" in capsys.readouterr().err


def test_a_harness_that_no_one_knows_is_not_taken_for_one_without_anything_to_read(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("reparse", "--yes", "--harness", "benchmark_modle") == 2
    assert "did you mean `benchmark_model`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "body", [{"limit": 0}, {"limit": 201}, {"after": -1}, {"since": "2026-01-01T00:00:00"}, {"more": 1}]
)
def test_a_piece_that_cannot_be_is_refused(farm: HttpFarm, body: dict[str, object]) -> None:
    assert farm.http.post("/api/v1/reparse", json=body).status_code == 422


def test_pieces_are_asked_for_one_after_the_other(farm: HttpFarm) -> None:
    first = farm.http.post("/api/v1/reparse", json={"limit": 1}).json()
    assert (first["examined"], len(first["changes"])) == (1, 1)
    second = farm.http.post("/api/v1/reparse", json={"limit": 1, "after": first["next_after"]}).json()
    assert second["changes"][0]["attempt_id"] > first["changes"][0]["attempt_id"]
    assert values(farm) == [5e9, 5e9]
