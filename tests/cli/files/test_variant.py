"""`farm variant add`, `show` and `list` against the farm's own API."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from farm.cli.files import local_variants
from farm.cli.files.local_variants import add_variant, build_and_register, manifest_of_file
from farm.cli.files.variant import select_variant
from farm.cli.shell.main import main
from farm.client.farm_client import FarmClient
from farm.core.base.ids import digest_of
from farm.variants.sources.source import Source, SourceKind
from tests.support.farm.api_server import served_farm
from tests.support.farm.service_fixture import model_file
from tests.support.models.flatbuffer_samples import executorch_program, tflite_model
from tests.support.models.onnx_network import CHANNELS, SIDE, convolutions
from tests.support.models.onnx_samples import EXTERNAL, field, initializer, model, number


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


def test_a_file_may_have_a_precision_of_its_own_and_a_slip_is_noted(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("variant", "add", net, "--precision", "w8a16") == 0
    assert "a precision of its own" not in capsys.readouterr().err
    assert run("variant", "add", net, "--precision", "int8core") == 0
    noted = "note: int8core is a precision of its own; did you mean int8-core?"
    assert noted in capsys.readouterr().err
    assert run("variant", "list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == ["net/w8a16/torchscript", "net/int8core/torchscript"]
    assert run("variant", "add", net, "--precision", "W8A16") == 2
    assert "or a word of lower-case letters" in capsys.readouterr().err
    assert run("variant", "build", "mobilenet_v2", "--precision", "w8a16") == 2
    assert "no precision 'w8a16' can be built" in capsys.readouterr().err


def test_a_list_is_by_name_person_and_time_with_so_many_of_the_newest(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for who, precision, marker in (("ann", "w8a16", "1"), ("ben", "w4a16", "2"), ("ann", "w8a16", "3")):
        monkeypatch.setenv("FARM_USER", who)
        net.write_bytes(model_file("torchscript", marker=marker))
        assert run("variant", "add", net, "--precision", precision) == 0
    capsys.readouterr()

    def listed(*words: str) -> list[tuple[str, int]]:
        assert run("variant", "list", *words, "--json") == 0
        return [
            (each["name"].split("/")[1], each["variant_id"]) for each in json.loads(capsys.readouterr().out)
        ]

    first, second, third = listed("--all")
    assert [first[0], second[0], third[0]] == ["w8a16", "w4a16", "w8a16"]
    assert listed() == [second, third]
    assert listed("--limit", "1") == [third]
    assert listed("--all", "--limit", "2", "--since", "1h") == [second, third]
    assert listed("--all", "--mine") == [first, third]
    assert listed("--mine", "--name", "W4A") == []
    assert listed("--name", "W4A") == [second]


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
    assert "keeps weights in 'm.onnx.data', and no such file was given" in said
    assert "--file m.onnx.data=PATH" in said
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


def test_a_file_shows_the_inputs_that_it_states_and_where_it_states_none(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tflite = tmp_path / "image.tflite"
    tflite.write_bytes(tflite_model(("image", (1, 8, 8, 3), 0, (-1, 8, 8, 3))))
    onnx = tmp_path / "dynamic.onnx"
    onnx.write_bytes(onnx_input_model())
    mnn = tmp_path / "net.param"
    mnn.write_bytes(b"7767517\n1 1\nInput in0 0 1 in0\n")
    for file, line in (
        (net, "inputs     bundled in the file"),
        (tflite, "inputs     image ?x8x8x3 float32"),
        (onnx, "inputs     tokens ?x8 int64 (batch is free)"),
        (
            mnn,
            "layer Input of in0 states no shape",
        ),
    ):
        assert run("variant", "add", file) == 0
        assert line in capsys.readouterr().out


def test_a_file_shows_the_operators_and_weights_that_are_counted_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx = tmp_path / "net.onnx"
    onnx.write_bytes(convolutions(layers=2))
    assert run("variant", "add", onnx) == 0
    shown = capsys.readouterr().out
    assert f"parameters {2 * CHANNELS * CHANNELS * 9:,}".replace(",", " ") in shown
    assert "operators  2 Conv, 2 Relu; 4 in all" in shown
    macs = f"{2 * CHANNELS * CHANNELS * 9 * SIDE * SIDE:,}".replace(",", " ")
    assert f"MACs       {macs}, counted in the file; 1 MAC = 2 FLOP" in shown
    kinds = "".join(f"ReLU{kind} layer{kind} 1 1 data out\n" for kind in range(8))
    ncnn = tmp_path / "kinds.param"
    ncnn.write_text(f"7767517\n8 8\n{kinds}")
    assert run("variant", "add", ncnn) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 ReLU5, 2 other kinds; 8 in all" in shown
    assert "MACs not counted: the file does not state the sizes of its tensors" in shown


def test_a_variant_is_renamed_and_its_inputs_are_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.pt"
    path.write_bytes(model_file("lite", marker="own", bundled=False))
    assert run("variant", "add", path) == 0
    assert "`farm variant set own/unstated/lite --input" in capsys.readouterr().err
    assert run("variant", "set", "own/unstated/lite", "--model", "net", "--input", "1x3x8x8:float32") == 0
    shown = capsys.readouterr().out
    assert "net/unstated/lite" in shown
    assert "inputs     1x3x8x8 float32, none bundled in the file" in shown
    assert run("variant", "set", "net/unstated/lite", "--input", "1,3,8,8") == 2
    assert "is not an input" in capsys.readouterr().err


def test_a_second_file_of_a_name_says_which_it_replaces(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = digest_of(net.read_bytes())
    assert run("variant", "add", net) == 0
    older = net.read_bytes()
    net.write_bytes(model_file("torchscript", marker="newer"))
    capsys.readouterr()
    assert run("variant", "add", net) == 0
    printed = capsys.readouterr()
    assert f"replaces {digest[:8]}, which is still run by that digest" in printed.err
    assert f"replaces   {digest[:12]}" in printed.out
    newer = digest_of(net.read_bytes())
    net.write_bytes(older)
    assert run("variant", "add", net) == 0
    assert f"net/unstated/torchscript is now {digest[:8]} and replaces {newer[:8]}" in capsys.readouterr().err
    assert run("variant", "show", "net/unstated/torchscript") == 0
    assert f"replaces   {newer[:12]}" in capsys.readouterr().out
    assert run("variant", "show", newer[:12]) == 0
    assert f"replaced   by {digest[:12]}" in capsys.readouterr().out
    assert run("variant", "list") == 0
    assert newer[:12] not in capsys.readouterr().out
    assert run("variant", "list", "--all") == 0
    assert "unstated/torchscript (replaced)" in capsys.readouterr().out


def test_a_build_that_is_reused_gives_its_file_the_name_again(
    net: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FarmClient(url) as client:
        built = add_variant(client, net, manifest_of_file(net))
        net.write_bytes(model_file("torchscript", marker="newer"))
        newer = add_variant(client, net, manifest_of_file(net))
        monkeypatch.setattr(local_variants, "known_digest", lambda *_: built.manifest.recipe_digest)
        source = Source(kind=SourceKind.FACTORY, origin="own:net", model="net")
        for told in (f"already; it replaces {newer.manifest.digest[:8]}\n", "already\n"):
            console = Console(file=StringIO())
            (result,) = build_and_register(client, source, [built.manifest.recipe], net.parent, console)
            assert (result.how, result.view.variant_id) == ("reused", built.variant_id)
            assert isinstance(console.file, StringIO)
            assert console.file.getvalue().endswith(told)
        assert select_variant(client.variants(), built.name) == result.view


def onnx_input_model() -> bytes:
    shape = field(2, field(1, field(2, b"batch")), field(1, number(1, 8)))
    return model(field(11, field(1, b"tokens"), field(2, field(1, number(1, 7), shape))))


@pytest.fixture
def llamas(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Two language models of ExecuTorch, and the tokenizer of both."""
    paths = tmp_path / "a.pte", tmp_path / "b.pte", tmp_path / "tokenizer.bin"
    for path, inputs in zip(paths[:2], ((6, (1, 8), False), (6, (1, 16), False)), strict=True):
        path.write_bytes(executorch_program(inputs, method="get_max_seq_len"))
    paths[2].write_bytes(b"a tokenizer")
    return paths


def test_a_language_model_is_added_with_its_tokenizer_and_not_without(
    llamas: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    model, _, tokenizer = llamas
    assert run("variant", "add", model) == 2
    said = capsys.readouterr().err
    assert "it is a language model, and no tokenizer was given" in said
    assert "--file tokenizer.bin" in said
    assert run("variant", "add", model, "--file", tokenizer) == 0
    shown = capsys.readouterr().out
    assert "model.executorch, " in shown
    assert f"tokenizer.bin, 11 B, {digest_of(b'a tokenizer')}" in shown


def test_what_two_variants_have_stays_until_the_last_of_them_is_removed(
    llamas: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    *models, tokenizer = llamas
    for path in models:
        assert run("variant", "add", path, "--file", tokenizer) == 0
    capsys.readouterr()
    removed = []
    for name in ("a/unstated/executorch", "b/unstated/executorch"):
        assert run("variant", "remove", name, "--yes", "--json") == 0
        removed.append({each["digest"] for each in json.loads(capsys.readouterr().out)})
    first, second = (digest_of(path.read_bytes()) for path in models)
    assert removed == [{first}, {second, digest_of(tokenizer.read_bytes())}]
