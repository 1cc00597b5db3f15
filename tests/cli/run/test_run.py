"""`farm run` against the farm's own API: what it registers and submits, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from farm.cli.shell.main import main
from farm.client.farm_client import FarmClient
from farm.core.base.ids import digest_of
from farm.core.devices.device import Presence
from farm.core.operations.role import Role
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import model_file, phone

DEFINITION = """
name: infer
arguments: --model=${model} --runs=${runs} --fast=${fast} ${backend_arguments}
flags:
  runs: {default: 20, minimum: 1}
  fast: {default: false}
backends:
  cpu: {}
  gpu: {arguments: --gpu, proof: on (.*)}
"""


#: The beginning of a file, by which its format is detected.
TFLITE = b"\x1c\0\0\0TFL3" + bytes(64)


def run(*words: str | Path) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def submitted(farm: HttpFarm, capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    """The matrix that a run queues."""
    capsys.readouterr()
    assert run("run", "--no-watch", "--json", *words) == 0, capsys.readouterr().err
    view = json.loads(capsys.readouterr().out)
    assert view["jobs_by_outcome"] == {"queued": view["jobs"]}
    found: dict[str, Any] = view
    return found


def refusal(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    capsys.readouterr()
    assert run("run", "--no-watch", *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def net(folder: Path, marker: str = "net", name: str = "net.pt") -> Path:
    path = folder / name
    path.write_bytes(model_file("torchscript", marker=marker))
    return path


def test_a_submitter_registers_a_program_in_a_name_space_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bench.sh"
    program.write_text("#!/bin/sh\necho took 3 ms\n")
    with http_farm(tmp_path / "farm", require_tokens=True) as farm:
        farm.enroll().exchange(devices=(phone("phone-1"),))
        monkeypatch.setenv("FARM_URL", farm.url)
        for role, name, harness in (("submitter", "ben", "ben/bench.sh"), ("operator", "olga", "bench.sh")):
            monkeypatch.setenv("FARM_TOKEN", farm.access_token(Role(role), name))
            assert submitted(farm, capsys, "--", program)["harness"] == harness
        # The first is found again under its name, whoever asks.
        assert submitted(farm, capsys, "--harness", "ben/bench.sh")["harness"] == "ben/bench.sh"


def test_a_model_file_is_registered_once_and_compared_over_backends(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--harness", "infer", "--backend", "cpu,gpu", "--rounds", "2", "--", "--runs", "5", "--fast"]
    view = submitted(farm, capsys, net(tmp_path), *options)
    assert (view["jobs"], view["rejected"]) == (8, 0)
    assert {cell["settings"]["runs"] for cell in view["cell_list"]} == {5}
    assert {cell["settings"]["fast"] for cell in view["cell_list"]} == {True}
    assert [cell["baseline"] for cell in view["cell_list"]] == [None, "cpu"] * 2
    again = submitted(farm, capsys, tmp_path / "net.pt", *options)
    by_name = submitted(farm, capsys, "net/unstated/torchscript", *options)
    assert {each["cell_list"][0]["variant"] for each in (view, again, by_name)} == {
        "net/unstated/torchscript"
    }
    with FarmClient(farm.url) as client:
        assert [view.name for view in client.variants()].count("net/unstated/torchscript") == 1


def test_a_file_whose_name_means_another_by_now_is_not_mixed_up_with_it(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = net(tmp_path, marker="two", name="two.pt")
    submitted(farm, capsys, first, "--harness", "infer")
    (tmp_path / "new").mkdir()
    submitted(farm, capsys, net(tmp_path / "new", marker="other", name="two.pt"), "--harness", "infer")
    assert "that name now refers to another file" in refusal(capsys, first, "--harness", "infer")
    view = submitted(farm, capsys, first, "--harness", "infer", "--model", "first")
    assert view["cell_list"][0]["variant"] == "first/unstated/torchscript"


def test_a_new_file_of_a_run_may_have_a_precision_of_its_own(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--no-watch", "--harness", "infer", "--precision")
    path = net(tmp_path)
    assert run("run", path, *words, "int8_core") == 0
    assert "note: int8_core is a precision of its own; did you mean int8-core?" in capsys.readouterr().err
    assert run("run", path, *words, "int4-g128") == 0
    assert "a precision of its own" not in capsys.readouterr().err


def test_inputs_of_a_run_are_declared_for_its_file_and_its_matrix(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.pt"
    path.write_bytes(model_file("torchscript", marker="own", bundled=False))
    options = ["--harness", "speed_benchmark_torch"]
    refused = refusal(capsys, path, *options)
    assert "has to be told the inputs of own/unstated/torchscript" in refused
    assert "farm variant set own/unstated/torchscript --input 1x3x224x224:float32" in refused
    view = submitted(farm, capsys, path, *options, "--input", "x=1x3x8x8:float32")
    told = {"use_bundled_input": -1, "input_dims": "1,3,8,8", "input_type": "float"}
    assert all(told.items() <= cell["settings"].items() for cell in view["cell_list"])
    assert "--input describes a model file" in refusal(capsys, "--input", "1:int8", "--", "prog")


def test_a_digest_runs_the_older_file_of_a_name_and_a_newer_one_says_what_it_replaces(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new").mkdir()
    older, newer = net(tmp_path, marker="older"), net(tmp_path / "new", marker="newer")
    submitted(farm, capsys, older, "--harness", "infer")
    digest = digest_of(older.read_bytes())
    assert run("run", "--no-watch", "--json", newer, "--harness", "infer") == 0
    assert f"replaces {digest[:8]}, which is still run by that digest" in capsys.readouterr().err
    for _ in range(2):
        view = submitted(farm, capsys, digest[:10], "--harness", "infer")
        assert {cell["variant"] for cell in view["cell_list"]} == {f"net-{digest[:8]}/unstated/torchscript"}
    with FarmClient(farm.url) as client:
        [run_file] = [each for each in client.variants() if each.name.startswith(f"net-{digest[:8]}/")]
    assert run_file.manifest.digest == digest
    by_name = submitted(farm, capsys, "net/unstated/torchscript", "--harness", "infer")
    assert {cell["variant"] for cell in by_name["cell_list"]} == {"net/unstated/torchscript"}


@pytest.mark.parametrize(
    ("names", "devices"),
    [(["Pixel 8"], {"phone-1"}), (["phone-2"], {"phone-2"}), (["phone*"], {"phone-1", "phone-2"})],
)
def test_phones_are_named_as_people_call_them(
    farm: HttpFarm,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    names: list[str],
    devices: set[str],
) -> None:
    (tmp_path / "bench").write_text("#!/bin/sh\n")
    chosen = [word for name in names for word in ("--device", name)]
    view = submitted(farm, capsys, *chosen, "--quick", "--", "./bench")
    assert {cell["device_id"] for cell in view["cell_list"]} == devices
    assert view["jobs"] == len(devices)


def test_a_program_is_its_own_harness_and_its_arguments_are_settings(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my bench.sh").write_text("#!/bin/sh\n")
    view = submitted(farm, capsys, "--", "./my bench.sh", "--size", "a b", "--", "-x")
    assert view["harness"] == "my_bench.sh"
    assert view["cell_list"][0]["settings"] == {"arguments": "--size 'a b' -- -x"}
    with FarmClient(farm.url) as client:
        (program,) = [each for each in client.programs() if each.name == "my_bench.sh"]
    assert (program.abi, program.command) == ("any", ("sh", "${program}", "${arguments}"))


def test_a_program_registered_before_is_the_one_in_use_when_it_is_run_again(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = []
    for content in ("#!/bin/sh\n", "#!/bin/sh\nexit 0\n", "#!/bin/sh\n"):
        (tmp_path / "bench").write_text(content)
        submitted(farm, capsys, "--", "./bench")
        with FarmClient(farm.url) as client:
            digests += [each.digest for each in client.programs() if each.name == "bench" and each.in_use]
    assert digests[0] == digests[2] != digests[1]


def test_a_harness_without_a_model_runs_without_a_file(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    (tmp_path / "plain.yaml").write_text("name: plain\narguments: ${n}\nflags: {n: {default: 1}}\n")
    assert run("harness", "add", "plain", "plain", "--definition", "plain.yaml") == 0
    view = submitted(farm, capsys, "--harness", "plain", "--", "--n=3")
    assert view["cell_list"][0]["settings"] == {"n": 3}
    assert "plain runs no model" in refusal(capsys, "net.pt", "--harness", "plain")
    assert "`plain` is a harness with its own definition" in refusal(capsys, "--", "./plain")


def test_a_phone_that_is_not_there_is_waited_for_only_where_it_is_named(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench").write_text("#!/bin/sh\n")
    agent = farm.enroll("bench-2")
    for presence in (Presence.ONLINE, Presence.ABSENT):
        answer = agent.exchange(devices=(phone("gone-9", presence=presence),))
        assert answer.status_code == 200, answer.text
    view = submitted(farm, capsys, "--quick", "--", "./bench")
    assert {cell["device_id"] for cell in view["cell_list"]} == {"phone-1", "phone-2"}
    named = submitted(farm, capsys, "--quick", "--device", "gone-9", "--", "./bench")
    assert {cell["device_id"] for cell in named["cell_list"]} == {"gone-9"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["net.tflite"], "no harness for net.tflite"),
        (["net.pt", "net.tflite", "--model", "m"], "--model names one file"),
        (["net.pt", "--harness", "infer", "--harness", "other"], "several harnesses for one run"),
        (["net.pt", "--harness", "infr"], "did you mean `infer`?"),
        (["nope.pt", "--harness", "infer"], "there is no 'nope.pt'"),
        (["nope.pt", "--harness", "infer", "--model", "m"], "--model and --precision describe a file"),
        (["net.pt", "--harness", ""], "the name of a harness is empty"),
        (["--harness", "infer"], "infer runs a model, and no FILE is named"),
        (["net.pt", "--harness", "infer", "--quick", "--rounds", "3"], "--quick and --rounds exclude"),
        (["net.pt", "--harness", "infer", "--time", "x ms"], "a program of your own"),
        (["net.pt", "--harness", "infer", "--", "5"], "'5' is not a flag"),
        (["net.pt", "--harness", "infer", "--", "--rnus", "5"], "did you mean `runs`?"),
        (["net.pt", "--harness", "infer", "--", "--runs"], "--runs has no value"),
        (["net.pt", "--harness", "infer", "--", "--runs", "many"], "'many' does not fit"),
        (["net.pt", "--harness", "infer", "--", "--runs=0"], "0 is less than 1"),
        (["net.pt", "--harness", "infer", "--", "--runs=1", "--runs=2"], "--runs is given twice"),
        (["net.pt", "--harness", "infer", "--device", "Pixel 9"], "no device fits the selector"),
        (["net.pt", "--harness", "infer", "--backend", "npu"], "no backend `npu`"),
        (["--device", "phone-8", "--", "./infer"], "no device fits the selector {device: phone-8}"),
        (["--", "./nope"], "nope: No such file"),
        (["--harness", "speed_benchmark_torch", "--", "./infer"], "is a built-in harness"),
        (["--backend", "gpu", "--", "./infer"], "has only the backend cpu"),
        (["--time", "took", "--", "./infer"], "has no unit, or no place"),
        (["--time", "took ([0-9.]+)", "--", "./infer"], "has no unit, or no place"),
        (["--metric", "m=peak ([0-9.]+) lower", "--", "./infer"], "is not complete"),
        (["--time", "took (x) MB", "--harness", "x", "--", "./infer"], "`MB` is no unit of time"),
        (["--metric", "m=x", "--", "./infer"], "--metric 'm=x' is not complete"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(
    farm: HttpFarm,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    told: str,
) -> None:
    net(tmp_path)
    (tmp_path / "net.tflite").write_bytes(TFLITE)
    (tmp_path / "infer").write_text("#!/bin/sh\n")
    with FarmClient(farm.url) as client:
        before = list(client.matrices())
        said = refusal(capsys, *words)
        assert list(client.matrices()) == before
    assert told in said
    assert "hint: " in said


def test_a_trial_takes_no_model_of_a_format_that_the_tool_does_not_read(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net(tmp_path)
    submitted(farm, capsys, "net.pt", "--harness", "infer")
    assert run("harness", "test", "benchmark_model", "--device", "phone-1") == 2
    assert "runs a model, and the farm has no suitable one" in capsys.readouterr().err


def test_nothing_is_registered_for_a_phone_that_the_farm_does_not_have(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "unheard").write_text("#!/bin/sh\n")
    net(tmp_path, marker="unheard", name="unheard.pt")
    with FarmClient(farm.url) as client:
        before = (client.programs(), client.variants())
        refusal(capsys, "--device", "nowhere", "--", "./unheard")
        refusal(capsys, "unheard.pt", "--harness", "infer", "--device", "nowhere")
        assert (client.programs(), client.variants()) == before


def test_an_option_of_a_run_behind_the_dashes_is_said_to_go_to_the_program(
    farm: HttpFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench").write_text("#!/bin/sh\n")
    assert run("run", "--no-watch", "--", "./bench", "--device", "phone-1", "--json") == 0
    said = capsys.readouterr().err
    assert "note: --device is passed to bench; options of `farm run` go before `--`" in said
    assert "--json goes to" not in said


def test_without_a_phone_that_may_work_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench").write_text("#!/bin/sh\n")
    with http_farm(tmp_path / "data") as farm:
        monkeypatch.setenv("FARM_URL", farm.url)
        said = refusal(capsys, "--", str(tmp_path / "bench"))
    assert "no active device is present" in said
    assert "farm up --virtual" in said


def test_without_a_farm_it_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_URL", "http://127.0.0.1:9")
    assert run("run", "--harness", "x") == 10
    assert "farm up" in capsys.readouterr().err
