"""`farm compare`: the matrix of two files, and what cannot be compared."""

import json
from pathlib import Path
from typing import Any

import pytest

from farm.client.farm_client import FarmClient
from farm.core.base.ids import digest_of
from tests.cli.run.test_run import run
from tests.support.farm.http_farm import HttpFarm
from tests.support.farm.service_fixture import model_file


def net(name: str, *, marker: str, format: str = "lite") -> Path:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(model_file(format, marker=marker))
    return path


def compared(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    """The matrix that a comparison queues."""
    capsys.readouterr()
    assert run("compare", "--no-watch", "--json", "--harness", "infer", *words) == 0, capsys.readouterr().err
    view: dict[str, Any] = json.loads(capsys.readouterr().out)
    return view


def refusal(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    capsys.readouterr()
    assert run("compare", *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_two_files_of_one_name_are_cells_of_one_matrix_on_each_device(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = net("main/net.ptl", marker="before"), net("new/net.ptl", marker="after")
    view = compared(capsys, a, b)
    assert (view["jobs"], view["rejected"], view["rounds"]) == (40, 0, 10)
    cells = {(cell["device_id"], cell["variant"], cell["baseline"]) for cell in view["cell_list"]}
    with FarmClient(farm.url) as client:
        digest_by_name = {each.name: each.manifest.digest for each in client.variants()}
    (candidate,) = {name for _, name, baseline in cells if baseline is not None}
    assert candidate.startswith("net-")
    assert cells == {
        (device, name, baseline)
        for device in ("phone-1", "phone-2")
        for name, baseline in (("net/unstated/lite", None), (candidate, "net"))
    }
    assert len(set(digest_by_name.values())) == len(digest_by_name)
    again = compared(capsys, a, b)
    by_name = compared(capsys, "net/unstated/lite", candidate)
    for other in (again, by_name):
        assert {cell["variant"] for cell in other["cell_list"]} == {"net/unstated/lite", candidate}


def test_a_digest_is_the_older_file_of_a_name_beside_the_newer_one(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    older, newer = net("old/net.ptl", marker="old"), net("new/net.ptl", marker="new")
    for file in (older, newer):
        assert run("variant", "add", file) == 0
    digest = digest_of(older.read_bytes())
    view = compared(capsys, digest[:12], "net/unstated/lite")
    names = {f"net-{digest[:8]}/unstated/lite", "net/unstated/lite"}
    assert {cell["variant"] for cell in view["cell_list"]} == names
    with FarmClient(farm.url) as client:
        digest_by_name = {each.name: each.manifest.digest for each in client.variants()}
    assert digest_by_name[f"net-{digest[:8]}/unstated/lite"] == digest


def test_each_backend_compares_the_two_and_axes_that_differ_are_the_baselines(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = net("deep.pt", marker="deep", format="torchscript"), net("flat.ptl", marker="flat")
    view = compared(
        capsys, a, b, "--backend", "cpu,gpu", "--device", "phone-1", "--rounds", "6", "--", "--runs", "5"
    )
    assert (view["jobs"], view["rejected"]) == (24, 0)
    assert {cell["settings"]["runs"] for cell in view["cell_list"]} == {5}
    baselines = {(cell["variant"], cell["backend"]): cell["baseline"] for cell in view["cell_list"]}
    assert baselines == {
        ("deep/unstated/torchscript", "cpu"): None,
        ("deep/unstated/torchscript", "gpu"): None,
        ("flat/unstated/lite", "cpu"): "deep torchscript cpu",
        ("flat/unstated/lite", "gpu"): "deep torchscript gpu",
    }


def test_one_declaration_of_inputs_is_for_both_files(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = Path("a/own.pt"), Path("b/own.pt")
    for path in (a, b):
        path.parent.mkdir()
        path.write_bytes(model_file("torchscript", marker=str(path), bundled=False))
    torch = ("--harness", "speed_benchmark_torch")
    assert "has to be told the inputs of own/unstated/torchscript" in refusal(capsys, a, b, *torch)
    words = ("--input", "x=1x3x8x8:float32", "--input", "n=1x4:int64")
    assert "'1,3' is not an input" in refusal(capsys, a, b, *torch, "--input", "1,3")
    view = compared(capsys, a, b, *torch, *words)
    told = {"use_bundled_input": -1, "input_dims": "1,3,8,8;1,4", "input_type": "float;int64"}
    assert len({cell["variant"] for cell in view["cell_list"]}) == 2
    assert all(told.items() <= cell["settings"].items() for cell in view["cell_list"])
    again = compared(capsys, *{cell["variant"] for cell in view["cell_list"]}, *torch, *words)
    assert all(told.items() <= cell["settings"].items() for cell in again["cell_list"])


def test_new_files_keep_the_inputs_that_a_comparison_declares(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = net("main/told.ptl", marker="told before"), net("new/told.ptl", marker="told after")
    view = compared(capsys, a, b, "--input", "x=1x8:float32")
    with FarmClient(farm.url) as client:
        inputs_by_name = {each.name: each.manifest.inputs for each in client.variants()}
    for cell in view["cell_list"]:
        assert [(spec.name, spec.shape) for spec in inputs_by_name[cell["variant"]]] == [("x", (1, 8))]


def test_a_precision_that_is_probably_a_slip_is_noted_and_compared(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = net("main/one.ptl", marker="one"), net("new/two.ptl", marker="two")
    words = ("--no-watch", "--json", "--harness", "infer", "--device", "phone-1", "--precision", "int8core")
    assert run("compare", a, b, *words) == 0
    printed = capsys.readouterr()
    assert printed.err.count("note: int8core is a precision of its own; did you mean int8-core?") == 2
    cells = json.loads(printed.out)["cell_list"]
    assert {cell["precision"] for cell in cells} == {"int8core"}
    assert run("compare", a, b, *words) == 0
    assert "a precision of its own" not in capsys.readouterr().err


def test_decide_adds_rounds_by_the_gate_up_to_forty(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = net("one.ptl", marker="one"), net("two.ptl", marker="two")
    view = compared(capsys, a, b, "--rounds", "5", "--decide")
    assert (view["rounds"], view["max_rounds"]) == (5, 40)


def test_a_gate_needs_numbers_and_a_summary_needs_a_gate(capsys: pytest.CaptureFixture[str]) -> None:
    assert "add --watch" in refusal(capsys, "a", "b", "--no-watch", "--gate", "not-slower")
    assert "add --gate not-slower" in refusal(capsys, "a", "b", "--summary", "gate.md")
    told = refusal(capsys, "a", "b", "--gate", "not-slower", "--summary", "-", "--json")
    assert "name a file: --summary gate.md" in told


def test_a_farm_out_of_reach_is_in_the_summary(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARM_URL", "http://127.0.0.1:9")
    asked = ("a", "b", "--harness", "infer", "--gate", "not-slower")
    summary = Path("gate.md")
    summary.write_text("before\n")
    assert run("compare", *asked, "--summary", summary) == 10
    assert capsys.readouterr().out == ""
    lines = summary.read_text().splitlines()
    assert lines[:4] == [
        "before",
        "### ❔ Unreachable",
        "",
        "Nothing is known: no farm answers at http://127.0.0.1:9.",
    ]
    assert run("compare", *asked, "--summary", "-") == 10
    assert "Unreachable" in capsys.readouterr().out
    assert run("compare", *asked) == 10


@pytest.mark.parametrize("gate", ["faster", "not-slower=3", "not-slower=-1%", "not-slower=51%", ""])
def test_what_is_no_gate_is_refused_with_how_to_write_one(
    capsys: pytest.CaptureFixture[str], gate: str
) -> None:
    assert "write --gate not-slower, or with the margin" in refusal(capsys, "a", "b", "--gate", gate)


def test_what_cannot_be_compared_is_told_with_what_can(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    a = net("same.ptl", marker="same")
    assert "`aa: true`" in refusal(capsys, a, a, "--harness", "infer")
    other = Path("other.tflite")
    other.write_bytes(b"\x1c\0\0\0TFL3" + bytes(64))
    assert "no program is registered that runs tflite" in refusal(capsys, a, other)
    assert "`farm speedups 12`" in refusal(capsys, "12", "13", "--harness", "infer")
    assert "no such variant" in refusal(capsys, a, "nothing", "--harness", "infer")
    assert "no device" in refusal(capsys, a, net("b.ptl", marker="b"), "--harness", "infer", "--device", "x")
