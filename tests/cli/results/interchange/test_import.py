"""`farm import` keeps what can be read, says of each other file why not, and is repeated without harm."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchfarm import AsyncFarm, Farm, InvalidInput
from farm.wire.documents.results.imports import ExternalResultView, ImportOutcome, ImportView
from tests.cli.run.test_run import run
from tests.harness.external.samples import BENCHMARK_MODEL, FILES
from tests.support.farm.http_farm import HttpFarm, http_farm


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "data") as served:
        monkeypatch.setenv("FARM_URL", served.url)
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of each format, two that cannot be read, a duplicate, and what is left out."""
    folder = tmp_path / "theirs"
    (folder / "logs").mkdir(parents=True)
    for name, content in FILES.items():
        (folder / ("logs" if name.endswith(".log") else ".") / name).write_bytes(content)
    (folder / "broken.json").write_bytes(FILES["ai_hub.json"][:-30])
    (folder / "noise.bin").write_bytes(os.urandom(1) + b"\x00\xff" * 50)
    (folder / "zz_again.json").write_bytes(FILES["ai_hub.json"])
    (folder / ".hidden.json").write_bytes(b"{")
    (folder / "link.json").symlink_to(folder / "broken.json")
    return folder


def outcomes(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert run("import", *words, "--json") == code
    return {Path(outcome["path"]).name: outcome for outcome in json.loads(capsys.readouterr().out)}


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run("import", *words, "--json") == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_a_folder_is_imported_and_each_refused_file_has_a_reason(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = outcomes(capsys, folder, "--dry-run", code=2)
    assert {planned[name]["outcome"] for name in FILES} == {"importable"}
    assert listed(capsys, "list") == []
    done = outcomes(capsys, folder, code=2)
    assert {done[name]["outcome"] for name in FILES} == {"imported"}
    assert {name: o["outcome"] for name, o in done.items() if name not in FILES} == {
        "broken.json": "refused",
        "noise.bin": "refused",
        "zz_again.json": "duplicate",
    }
    assert "is not JSON at line 1" in done["broken.json"]["reason"]
    assert done["zz_again.json"]["reason"].endswith("ai_hub.json of this call has the same bytes")
    again = outcomes(capsys, folder, code=2)
    assert {again[name]["outcome"] for name in FILES} == {"duplicate"}
    assert {again[name]["import_id"] for name in FILES} == {done[name]["import_id"] for name in FILES}
    files = [ImportView.model_validate(view) for view in listed(capsys, "list")]
    assert {view.name for view in files} == set(FILES)


def test_a_call_that_was_interrupted_is_completed_by_the_next(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = outcomes(capsys, folder / "ai_hub.json", folder / "llama.json", code=0)
    rest = outcomes(
        capsys, *sorted(folder / name for name in ("ai_hub.json", "llama.json", "mlperf.json")), code=0
    )
    assert {name: outcome["outcome"] for name, outcome in rest.items()} == {
        "ai_hub.json": "duplicate",
        "llama.json": "duplicate",
        "mlperf.json": "imported",
    }
    assert len(first) == 2


def test_a_folder_of_own_logs_is_read_by_an_adapter(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.txt").write_text(BENCHMARK_MODEL)
    (logs / "b.txt").write_text(BENCHMARK_MODEL.replace("5000.5", "5001.5"))
    (logs / "notes.txt").write_text("not a log")
    options = ("--harness", "benchmark_model", "--device", "Phone A")
    done = outcomes(capsys, logs, *options, code=2)
    assert {name: outcome["outcome"] for name, outcome in done.items()} == {
        "a.txt": "imported",
        "b.txt": "imported",
        "notes.txt": "refused",
    }
    times = listed(capsys, "results", "--device", "Phone A", "--metric", "time")
    assert [ExternalResultView.model_validate(view).value for view in times] == [5_000_500.0, 5_001_500.0]


def test_a_wrong_call_says_what_to_do(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for words, reason in (
        ([tmp_path / "nowhere"], "there is no file or folder"),
        ([tmp_path / "empty"], "there is no file in it"),
        ([__file__, "--harness", "no_such"], "there is no harness"),
        (["withdraw", "7", "--reason", "none", "-y"], "there is no import 7"),
    ):
        capsys.readouterr()
        assert run("import", *words) == 2
        assert reason in capsys.readouterr().err
    (tmp_path / "huge.json").write_bytes(b" " * (4 * 1024 * 1024 + 1))
    os.mkfifo(tmp_path / "pipe")
    done = outcomes(capsys, tmp_path / "huge.json", tmp_path / "pipe", code=2)
    assert "more than 4 MiB" in done["huge.json"]["reason"]
    assert done["pipe"]["reason"] == "it is no file"


def test_tables_say_unknown_and_a_withdrawn_import_is_gone_from_them(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run("import", folder / "ai_hub.json") == 0
    assert "ai_hub.json: 3 results, ai-hub, imported as import 1" in capsys.readouterr().err
    assert run("import", "results") == 0
    table = capsys.readouterr().out
    assert "import 1: Qualcomm AI Hub" in table
    assert "unknown" in table
    assert run("import", "withdraw", "1", "--reason", "of another phone", "--yes") == 0
    capsys.readouterr()
    assert run("import", "list") == 0
    assert "of another phone" in capsys.readouterr().out
    assert listed(capsys, "results") == []
    assert len(listed(capsys, "results", "--withdrawn")) == 3


def test_export_and_python_client_have_the_same_numbers(
    farm: HttpFarm, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes(capsys, folder / "llama.json", folder / "mlperf.json", code=0)
    wanted = listed(capsys, "results")
    for format in ("jsonl", "csv", "parquet"):
        if format == "parquet":
            pytest.importorskip("pyarrow")
        out = tmp_path / format
        assert run("export", "external", "--out", out, "--format", format) == 0
    (file,) = (tmp_path / "jsonl" / "external").glob("*.jsonl")
    assert [json.loads(line) for line in file.read_text().splitlines()] == wanted
    with Farm(farm.url) as client:
        rows = client.imports.results(model="tiny-q4.gguf").to_dicts()
    assert [(row["metric"], row["value"], row["unit"], row["n"]) for row in rows] == [
        (view["metric"], view["value"], view["unit"], view["sample_count"])
        for view in wanted
        if view["model"] == "tiny-q4.gguf"
    ]
    assert {row["quality"] for row in rows} == {"external"}

    async def ask() -> int:
        async with AsyncFarm(farm.url) as client:
            return len((await client.imports.results()).to_dicts())

    assert asyncio.run(ask()) == len(wanted)


def test_the_python_client_imports_lists_and_withdraws(farm: HttpFarm, folder: Path) -> None:
    with Farm(farm.url) as client:
        with pytest.raises(InvalidInput, match="not JSON"):
            client.imports.add(folder / "broken.json", dry_run=True)
        with pytest.raises(InvalidInput, match="it is no file"):
            client.imports.add(folder)
        assert client.imports.add(folder / "llama.json", dry_run=True).outcome is ImportOutcome.IMPORTABLE
        assert client.imports.list() == []
        first = client.imports.add(folder / "llama.json", device="Phone A")
        assert client.imports.add(folder / "llama.json").outcome is ImportOutcome.DUPLICATE
        last = client.imports.add(folder / "mlperf.json")
        assert [file.import_id for file in client.imports.list()] == [first.import_id, last.import_id]
        assert [file.name for file in client.imports.list(name="llama", since="1d")] == ["llama.json"]
        withdrawn = client.imports.withdraw(last.import_id or 0, "of another phone")
        assert withdrawn.reason == "of another phone"
        assert len(client.imports.results()) == first.results

    async def ask() -> list[str]:
        async with AsyncFarm(farm.url) as client:
            again = await client.imports.add(folder / "mlperf.json")
            return [str(again.outcome), *(file.name for file in await client.imports.list(mine=True))]

    assert asyncio.run(ask()) == ["imported", "llama.json", "mlperf.json", "mlperf.json"]


def test_lists_and_reasons_are_read_in_80_columns(
    farm: HttpFarm, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (folder / f"more{number}.bin").write_bytes(bytes([number, 0, 255]))
    assert run("import", folder) == 2
    told = capsys.readouterr().err
    counts = f"{len(FILES) + 6} files: {len(FILES)} imported with "
    assert counts in told
    assert " results, 1 known already, 5 refused." in told
    assert (
        told.count("hint: docs/import.md lists the formats; a log of another tool needs --harness NAME") == 1
    )
    monkeypatch.setenv("COLUMNS", "80")
    assert run("import", "results") == 0
    lines = capsys.readouterr().out.splitlines()
    views = listed(capsys, "results")
    for view in views:
        # A row each, which nothing wraps.
        value = f"{view['value']:.12g}"
        assert any(line.startswith(f"  {view['metric']} ") and value in line.split() for line in lines), view
