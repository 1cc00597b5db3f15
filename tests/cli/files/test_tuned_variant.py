"""`farm variant records` and the tuning options of `farm variant build`, against the farm's own API."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from farm.cli.files.local_variants import manifest_of_file
from farm.cli.shell.main import main
from farm.client.farm_client import FarmClient
from farm.core.base.ids import digest_of
from farm.core.models.variant import Tuning
from tests.support.farm.api_server import served_farm
from tests.support.farm.service_fixture import model_file

RECORDS = b'{"workloads":[],"records":[]}\n'


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with served_farm(tmp_path / "data") as address:
        monkeypatch.setenv("FARM_URL", address)
        yield address


def run(*words: str | Path) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def test_records_are_shown_and_saved_and_removed_with_the_variant(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, records, out = tmp_path / "net.pt", tmp_path / "records", tmp_path / "saved.json"
    path.write_bytes(model_file("torchscript", marker="net"))
    records.write_bytes(RECORDS)
    tuning = Tuning(trials=8, records=digest_of(RECORDS), size_bytes=len(RECORDS))
    manifest = replace(manifest_of_file(path, precision="float32"), tuning=tuning)
    with FarmClient(url) as farm:
        farm.upload(path, manifest.digest)
        farm.upload(records, tuning.records)
        name = farm.register_variant(manifest).name
    assert run("variant", "show", name) == 0
    shown = capsys.readouterr().out
    assert "8 trials" in shown
    assert tuning.records in shown.replace("\n", "")
    assert run("variant", "records", name, "--out", out) == 0
    assert out.read_bytes() == RECORDS
    assert run("variant", "remove", name, "--yes") == 0
    assert f"remove {tuning.records[:12]}: tuning records of {name}" in capsys.readouterr().err
    assert run("variant", "records", name, "--out", out) != 0


def test_a_variant_that_was_not_tuned_has_no_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(model_file("torchscript", marker="net"))
    assert run("variant", "add", path) == 0
    assert run("variant", "records", "net/unstated/torchscript", "--out", tmp_path / "saved.json") != 0
    assert "has no tuning records" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--runtime", "tvm", "--target", "x86_64-tuned"), "--tune TRIALS"),
        (("--runtime", "onnxruntime", "--tune", "8"), "nothing of onnxruntime can be tuned"),
        (("--runtime", "tvm", "--records", "nothing.json"), "has no records of TVM's tuner"),
    ],
)
def test_tuning_that_cannot_be_is_refused_at_once(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("variant", "build", "mobilenet_v2", *words) != 0
    assert said in capsys.readouterr().err.replace("\n", " ")
