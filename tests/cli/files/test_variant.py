"""`farm variant add`, `show` and `list` against the farm's own API."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.cli.shell.main import main
from tests.support.farm.api_server import served_farm
from tests.support.farm.service_fixture import model_file
from tests.support.models.onnx_samples import EXTERNAL, initializer


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with served_farm(tmp_path / "data") as address:
        monkeypatch.setenv("FARM_URL", address)
        yield address


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.pt"
    path.write_bytes(model_file("torchscript", marker="net"))
    return path


def run(*words: str | Path) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def test_an_added_file_is_listed_and_shown(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("variant", "add", net, "--precision", "float32", "--input", "1x8:float32", "--json") == 0
    added = json.loads(capsys.readouterr().out)
    assert added["name"] == "net/float32/torchscript"
    assert run("variant", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [added]
    assert run("variant", "show", added["name"], "--json") == 0
    assert json.loads(capsys.readouterr().out) == added
    assert run("variant", "show", added["manifest"]["digest"][:12]) == 0
    shown = capsys.readouterr().out
    assert "net/float32/torchscript" in shown
    assert "1x8 float32" in shown
    assert "not compared with float32" in shown


def test_adding_a_file_twice_adds_one(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("variant", "add", net) == run("variant", "add", net) == 0
    capsys.readouterr()
    assert run("variant", "list", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_the_same_file_for_other_backends_needs_another_name(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("variant", "add", net) == 0
    assert run("variant", "add", net, "--backend", "cpu,vulkan") == 2
    assert "another model name" in capsys.readouterr().err
    assert run("variant", "add", net, "--backend", "cpu,vulkan", "--model", "net_on_gpu") == 0


def test_what_is_no_model_never_reaches_the_farm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(initializer(EXTERNAL))
    assert run("variant", "add", path) == 2
    said = capsys.readouterr().err
    assert "weights are in another file" in said
    assert "hint: pushing only the .onnx loses the weights" in said
    assert run("variant", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_name_that_no_matrix_could_use_is_refused(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("variant", "add", net, "--model", "my net") == 2
    assert "is not a name" in capsys.readouterr().err


def test_a_variant_no_one_has_is_answered_with_the_closest(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("variant", "add", net) == 0
    assert run("variant", "show", "net/unstated/torchscrip") == 2
    assert "did you mean `net/unstated/torchscript`?" in capsys.readouterr().err
