"""Programs on their way to the farm: `farm harness` against the farm's own API, and what the API refuses."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farm.cli.shell.main import main
from farm.core.base.ids import digest_of
from farm.core.base.setting_values import flag_option
from farm.harness.registry import get_harness, harness_names
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.models.elf_samples import ARM, elf_file

HARNESS = "speed_benchmark_torch"
FLAGS = ("iter", "warmup", "pthreadpool_size", "use_bundled_input", "input_dims", "input_type")
NAMES = b"".join(b"\0" + name.encode() + b"\0" for name in FLAGS)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    with http_farm(tmp_path_factory.mktemp("farm")) as running:
        yield running


@pytest.fixture(autouse=True)
def address(farm: HttpFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_URL", farm.url)


def run(*words: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bundle as builds leave it: program, library, data, a link, and what nobody needs."""
    made = tmp_path / "out"
    for name in ("lib", "data", ".git"):
        (made / name).mkdir(parents=True)
    (made / "bench").write_bytes(elf_file(needed=["libc.so", "libfoo.so"], text=NAMES))
    (made / "bench").chmod(0o755)
    (made / "lib/libfoo.so").write_bytes(elf_file(loader=None))
    (made / "data/labels.txt").write_text("cat\n")
    (made / "data/again.txt").symlink_to("labels.txt")
    (made / "more").symlink_to("data")
    (made / ".git/HEAD").write_text("ref")
    (made / ".DS_Store").write_text("junk")
    return made


def added(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What `farm harness add --json` says."""
    assert run("harness", "add", HARNESS, *words, "--json") == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The error and hint of an `add` that is the user's mistake."""
    assert run("harness", "add", *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "\nhint: " in printed.err
    return printed.err


def test_a_folder_becomes_a_bundle_with_its_abi_entry_and_environment(
    folder: Path, capsys: pytest.CaptureFixture[str], farm: HttpFarm
) -> None:
    answer = added(
        capsys,
        str(folder),
        *("--env", "LD_LIBRARY_PATH=${work}/lib"),
        *("--command", "taskset f0 ${program} '--a b' ${arguments}"),
    )
    program = answer["program"]
    assert (program["abi"], program["entry"], program["in_use"]) == ("arm64-v8a", "bench", True)
    assert program["env"] == {"LD_LIBRARY_PATH": "${work}/lib"}
    assert program["command"] == ["taskset", "f0", "${program}", "--a b", "${arguments}"]
    assert {file["path"]: file["executable"] for file in program["files"]} == {
        "bench": True,
        "data/again.txt": False,
        "data/labels.txt": False,
        "lib/libfoo.so": False,
        "more/again.txt": False,
        "more/labels.txt": False,
    }
    assert answer["replaces"] is None
    assert "vulkan" in program["missing_flags"]
    assert not set(program["missing_flags"]) & set(FLAGS)
    assert [note["message"] for note in answer["notes"]] == [
        f"it does not know {', '.join(program['missing_flags'])}"
    ]
    labels = b"cat\n"
    assert farm.http.get(f"/api/v1/blobs/{digest_of(labels)}").content == labels


def test_what_was_left_out_is_said_and_what_it_replaces(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bench").write_bytes(elf_file(needed=["libc.so", "libfoo.so"], text=NAMES + b"v2"))
    first = added(capsys, str(folder))["program"]["digest"]
    (folder / "bench").write_bytes(elf_file(needed=["libc.so", "libfoo.so"], text=NAMES + b"v3"))
    assert run("harness", "add", HARNESS, str(folder)) == 0
    printed = capsys.readouterr()
    assert "bench" in printed.out
    assert printed.err.startswith("skipped .DS_Store\nskipped .git\n")
    assert f"It replaces {first[:12]}" in printed.err
    assert "warning: `bench` needs libfoo.so, which the phone will not look for in the bundle" in printed.err
    assert "hint: --env 'LD_LIBRARY_PATH=${work}/lib', in single quotes" in printed.err


def test_a_program_of_before_is_put_back_in_use_by_adding_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(elf_file(ARM, text=NAMES))
    new.write_bytes(elf_file(ARM, text=NAMES + b"new"))
    before = added(capsys, str(old))["program"]["digest"]
    added(capsys, str(new))
    again = added(capsys, str(old))
    assert again["was_registered"]
    assert again["program"]["digest"] == before == digest_of(old.read_bytes())
    assert again["replaces"]["digest"] == digest_of(new.read_bytes())
    in_use, replaced = digest_of(old.read_bytes()), digest_of(new.read_bytes())
    assert _of_arm(capsys) == {in_use: True}
    assert _of_arm(capsys, "--all") == {in_use: True, replaced: False}


def _of_arm(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, bool]:
    assert run("harness", "list", "--json", *options) == 0
    listed = json.loads(capsys.readouterr().out)
    return {each["digest"]: each["in_use"] for each in listed if each["abi"] == "armeabi-v7a"}


def test_replaced_programs_are_counted_and_shown_with_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for content in (b"", b"new"):
        program = tmp_path / f"program{len(content)}"
        program.write_bytes(elf_file(ARM, text=NAMES + content))
        added(capsys, str(program))
    assert run("harness", "show", "speed_benchmark_torch") == 0
    shown = capsys.readouterr()
    assert "replaced" not in shown.out
    assert re.search(r"[1-9] replaced programs? not shown: --all shows all\.", shown.err)
    assert run("harness", "show", "speed_benchmark_torch", "--all") == 0
    assert "replaced" in capsys.readouterr().out


def test_a_script_runs_anywhere_or_where_it_is_meant_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "bench.sh"
    script.write_text("#!/bin/sh\necho --iter --warmup\n")
    assert added(capsys, str(script))["program"]["abi"] == "any"
    assert added(capsys, str(script), "--abi", "x86")["program"]["abi"] == "x86"


def test_a_harness_is_shown_with_flags_backends_and_every_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = added(capsys, str(folder), "--env", "ADSP_LIBRARY_PATH=${work}/dsp")["program"]["digest"]
    assert run("harness", "show", HARNESS) == 0
    shown = capsys.readouterr().out
    for words in ("backends: cpu", "the clock covers: forward()", "iter ", "timed iterations", digest):
        assert words in shown
    assert "lib/libfoo.so  " in shown
    assert "environment: ADSP_LIBRARY_PATH=${work}/dsp" in shown
    assert run("harness", "show", HARNESS, "--json") == 0
    assert {flag["name"] for flag in json.loads(capsys.readouterr().out)["flags"]} >= set(FLAGS)


def test_a_harness_that_no_one_knows_is_refused_before_anything_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], farm: HttpFarm
) -> None:
    program = tmp_path / "bench"
    program.write_bytes(elf_file(text=os.urandom(16)))
    said = refused(capsys, "speed_benchmark_tosh", str(program))
    assert f"did you mean `{HARNESS}`?" in said
    assert "--definition" in said
    missing = farm.http.head(f"/api/v1/blobs/{digest_of(program.read_bytes())}")
    assert missing.status_code == 404
    assert run("harness", "show", "nope") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--abi", "x86_64"), "`bench` is built for arm64-v8a, not for x86_64"),
        (("--abi", "arm64-v8"), "did you mean `arm64-v8a`?"),
        (("--entry", "bin/bench"), "there is no such file in the bundle"),
        (("--entry", "data/labels.txt"), "neither a binary nor a script"),
        (("--entry", "lib/libfoo.so"), "is a library"),
        (("--env", "NOVALUE"), "write NAME=VALUE"),
        (("--env", "X=${home}"), "only ${work} is filled in"),
        (("--env", "BENCHFARM_RUN=1"), "the farm's own"),
        (("--command", "taskset f0 ${program}"), "needs ${arguments}"),
        (("--command", "'"), "No closing quotation"),
        (("--definition", "nowhere.yaml"), "nowhere.yaml: No such file"),
        (("--definition", sys.executable), "not a text file"),
    ],
)
def test_what_cannot_be_is_told_with_a_hint(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert said in refused(capsys, HARNESS, str(folder), *words)


def test_folders_that_are_no_bundle_are_told_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    empty = tmp_path / "empty"
    (empty / ".git").mkdir(parents=True)
    assert "the folder is empty" in refused(capsys, HARNESS, str(empty))
    assert "no such file" in refused(capsys, HARNESS, str(tmp_path / "none"))
    (folder / "second").write_bytes(elf_file(text=NAMES))
    (folder / "second").chmod(0o755)
    assert "hint: --entry says which: bench, second" in refused(capsys, HARNESS, str(folder))
    (folder / "second").unlink()
    (folder / "stdout").write_text("mine")
    assert "every run needs itself" in refused(capsys, HARNESS, str(folder))
    (folder / "stdout").unlink()
    (folder / "lib/libbar.so").write_bytes(elf_file(ARM, loader=None))
    assert "`lib/libbar.so` is built for armeabi-v7a" in refused(capsys, HARNESS, str(folder))
    (folder / "lib/libbar.so").unlink()
    (folder / "lib/round").symlink_to("..")
    assert "forms a loop" in refused(capsys, HARNESS, str(folder))
    (folder / "lib/round").unlink()
    (folder / "gone").symlink_to("nowhere")
    assert "cannot be read" in refused(capsys, HARNESS, str(folder))


def registration(farm: HttpFarm, **changes: Any) -> dict[str, Any]:
    """A registration whose one file was uploaded."""
    content = elf_file(text=NAMES)
    digest = digest_of(content)
    farm.http.put(f"/api/v1/blobs/{digest}", content=content)
    files = [{"path": "bench", "digest": digest, "executable": True}]
    return {"name": HARNESS, "files": files, "entry": "bench", **changes}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "nope"}, "input.invalid"),
        ({"name": "../x"}, "input.invalid"),
        ({"entry": "other"}, "input.invalid"),
        ({"abi": "x86_64"}, "input.invalid"),
        ({"files": []}, "input.invalid"),
        ({"command": ["${program}"]}, "input.invalid"),
        ({"env": {"X": "${file_model}"}}, "input.invalid"),
        ({"definition": {"name": HARNESS}}, "input.invalid"),
        ({"name": "mine", "definition": {"name": "other"}}, "input.invalid"),
        ({"name": "mine", "definition": {"nam": "mine"}}, "harness.invalid"),
    ],
)
def test_the_farm_checks_a_registration_itself(farm: HttpFarm, changes: dict[str, Any], code: str) -> None:
    answer = farm.http.post("/api/v1/harnesses", json=registration(farm, **changes))
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert answer.json()["hint"]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../x", "a\0b", "a\nb", "x" * 300, "", "stdout", "run.sh"]
)
def test_the_farm_refuses_paths_that_lead_elsewhere_itself(farm: HttpFarm, path: str) -> None:
    body = registration(farm)
    body["files"].append({**body["files"][0], "path": path})
    answer = farm.http.post("/api/v1/harnesses", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "input.invalid")


def test_files_that_were_not_uploaded_are_named(farm: HttpFarm) -> None:
    body = registration(farm)
    body["files"].append({"path": "lib/x", "digest": digest_of(b"never sent")})
    answer = farm.http.post("/api/v1/harnesses", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "artifact.missing")
    assert "lib/x" in answer.json()["detail"]
    body["files"][-1]["digest"] = "no digest"
    assert farm.http.post("/api/v1/harnesses", json=body).status_code == 422


def test_every_registration_is_an_event(farm: HttpFarm) -> None:
    answer = farm.http.post("/api/v1/harnesses", json=registration(farm))
    assert answer.status_code == 201

    def causes(connection: Any) -> list[str]:
        query = "SELECT cause FROM events WHERE kind = 'program_registered' ORDER BY event_id"
        return [row.cause for row in connection.exec_driver_sql(query)]

    digest = answer.json()["program"]["digest"]
    assert farm.context.database.read(causes)[-1] == f"{HARNESS} for arm64-v8a, {digest[:12]}"


def test_adapters_are_listed_with_what_they_read_whether_there_is_a_program_or_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("harness", "list", "--adapters", "--json") == 0
    by_name = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert list(by_name) == harness_names()
    assert by_name["benchmark_model"]["formats"] == ["tflite"]
    assert by_name["benchmark_model"]["abis"] == []
    assert by_name["onnxruntime_perf_test"]["formats"] == ["onnx", "ort"]
    assert by_name[HARNESS]["abis"] != []


def test_the_list_of_programs_has_the_adapters_below(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Wide enough for names in one line beside programs that other tests registered.
    monkeypatch.setenv("COLUMNS", "200")
    assert run("harness", "list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in harness_names())


@pytest.mark.parametrize("name", [name for name in harness_names() if name != HARNESS])
def test_each_adapter_takes_a_program_and_lacks_no_flag_that_it_cannot_show(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = get_harness(name).flags if get_harness(name).flags_are_words else {}
    words = [flag_option(own, flag) for own, flag in flags.items()]
    path = tmp_path / "tool"
    path.write_bytes(elf_file(needed=["libc.so"], text=b"".join(b"\0%b\0" % word.encode() for word in words)))
    path.chmod(0o755)
    assert run("harness", "add", name, str(path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["program"]["missing_flags"] == []
