"""The `farm` command against the farm's own API: what it prints, where, and how it ends."""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.cli.shell.address import ANNOUNCEMENT_FILE, LOCK_FILE, find_running
from farm.cli.shell.main import main
from farm.core.errors import Blame, InvalidInput
from farm.daemon import data_folder_lock
from tests.support.farm.api_server import problem, scripted_server, served_farm

MATRIX = """\
name: small
harness: speed_benchmark_torch
axes:
  model: mobilenet_v2
  precision: float32
  format: torchscript
  backend: cpu
devices: all
baseline: {precision: float32}
"""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with served_farm(tmp_path / "data") as address:
        monkeypatch.setenv("FARM_URL", address)
        yield address


def run(*words: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


@pytest.mark.parametrize(
    "words",
    [
        ("devices",),
        ("variant", "list"),
        ("harness", "list"),
        ("matrix", "list"),
        ("speedups",),
        ("placement",),
    ],
    ids=" ".join,
)
def test_every_listing_is_one_json_list_on_stdout_and_nothing_else(
    url: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run(*words, "--json") == 0
    printed = capsys.readouterr()
    assert isinstance(json.loads(printed.out), list)
    assert printed.err == ""


def test_without_comparisons_stdout_is_empty_and_stderr_says_where_to_look(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("speedups") == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "farm matrix list" in printed.err


def test_filters_that_left_no_comparison_are_said_to_have(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (((), "No comparisons yet"), (("--since", "30d"), "fewer filters may show some")):
        assert run("speedups", "--by", "all", *words) == 0
        assert said in capsys.readouterr().out


@pytest.mark.parametrize("json_or_not", [(), ("--json",)])
def test_a_word_no_one_knows_is_named_with_what_there_is(
    url: str, capsys: pytest.CaptureFixture[str], json_or_not: tuple[str, ...]
) -> None:
    assert run("speedups", "--device", "nope", *json_or_not) == 2
    printed = capsys.readouterr()
    assert printed.err == "error: no device `nope`\nhint: no phone was seen yet: docs/devices.md\n"
    assert printed.out == ""
    assert run("speedups", "--model", "nope", *json_or_not) == 2
    assert capsys.readouterr().err == "error: no model `nope`\nhint: the farm has no models yet\n"


def test_a_listing_is_a_table_with_headings(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("harness", "list") == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["harness", "abi", "program", "use", "size", "digest"]
    assert any(row.startswith("speed_benchmark_torch") for row in rows)


def test_an_attempt_that_does_not_exist_ends_with_where_they_are_listed(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("attempt", "show", "9") == 2
    assert capsys.readouterr().err == (
        "error: there is no attempt 9\nhint: `farm matrix jobs ID` lists a matrix's attempts\n"
    )


def test_what_does_not_exist_ends_with_a_hint_and_the_users_exit_code(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ("matrix", "show", "9"),
        ("matrix", "jobs", "9"),
        ("speedups", "--matrix", "9"),
        ("speedups", "9"),
        ("placement", "9"),
        ("placement", "--matrix", "9"),
    ):
        assert run(*words, "--json") == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("error: there is no matrix 9\nhint: ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("name: small", "nam: small"), "nam (line 1): unknown key"),
        (("harness: speed_benchmark_torch", "harness: other"), "line 2: harness: no harness"),
        (("  format: torchscript", "  format: ["), "not YAML"),
        (("rounds: 5", "rounds: 5"), "line 4: axes.model: no model `mobilenet_v2`"),
    ],
    ids=["key", "harness", "yaml", "model"],
)
def test_what_is_wrong_in_a_matrix_is_told_with_file_line_and_hint(
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: tuple[str, str],
    said: str,
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(MATRIX.replace(*change))
    assert run("matrix", "submit", str(file)) == 2
    error, *more = capsys.readouterr().err.splitlines()
    told = "\n".join([error, *more])
    assert error.startswith(f"error: {file}")
    assert said in told
    assert "\nhint: " in told


def test_a_matrix_file_that_is_not_there_is_named(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("matrix", "submit", str(tmp_path / "none.yaml")) == 2
    assert f"error: {tmp_path / 'none.yaml'}: No such file" in capsys.readouterr().err


def test_a_model_no_one_can_build_is_the_users_fault(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("variant", "build", "mobilenet_v99") == 2
    assert "hint: did you mean" in capsys.readouterr().err
    assert run("variant", "build", "mobilenet_v2", "--precision", "int3") == 2
    assert "error: no precision 'int3'" in capsys.readouterr().err


@pytest.mark.parametrize("blame", list(Blame))
def test_the_exit_code_says_whose_doing_it_was(
    blame: Blame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted_server({"GET /api/v1/devices": problem("some.code", blame)}) as address:
        monkeypatch.setenv("FARM_URL", address)
        assert run("devices") == blame.exit_code
    assert capsys.readouterr().err == "error: some.code happened\nhint: do otherwise\n"


def test_exit_codes_are_different_and_none_is_that_of_a_bug() -> None:
    codes = [blame.exit_code for blame in Blame]
    assert len({0, 1, *codes}) == len(codes) + 2


def test_a_farm_that_is_not_there_is_the_farms_fault_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted_server({}) as address:
        pass
    monkeypatch.setenv("FARM_URL", address)
    assert run("devices") == 10
    assert capsys.readouterr().err == (
        f"error: no farm answers at {address}\nhint: start one with `farm up`, or set FARM_URL\n"
    )


def test_an_address_that_is_none_is_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_URL", "127.0.0.1:8470")
    assert run("devices") == 2
    assert "hint: write FARM_URL like http://127.0.0.1:8470" in capsys.readouterr().err


def test_the_farm_that_runs_in_the_data_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FARM_URL", raising=False)
    monkeypatch.setenv("FARM_DATA_DIR", str(tmp_path))
    with scripted_server({"GET /api/v1/devices": (200, [])}) as address, data_folder_lock(tmp_path):
        announce(tmp_path, {"url": address, "pid": os.getpid()})
        assert run("devices", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_farm_that_was_killed_is_not_found_although_its_pid_was_given_to_another(tmp_path: Path) -> None:
    with data_folder_lock(tmp_path):
        announce(tmp_path, {"url": "http://127.0.0.1:9", "pid": os.getpid()})
        assert find_running(tmp_path) == "http://127.0.0.1:9"
    assert find_running(tmp_path) is None


def test_a_farm_that_another_user_announces_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would get the token of whoever types a command in a folder that several people write to."""
    announce(tmp_path, {"url": "http://127.0.0.1:9", "pid": os.getpid()})
    if os.geteuid() == 0:
        os.chown(tmp_path / ANNOUNCEMENT_FILE, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with data_folder_lock(tmp_path):
        assert find_running(tmp_path) is None


@pytest.mark.parametrize("said", ["", "[]", "{}", '{"pid": 1}', "\\"])
def test_an_announcement_that_makes_no_sense_announces_nothing(tmp_path: Path, said: str) -> None:
    (tmp_path / ANNOUNCEMENT_FILE).write_text(said)
    with data_folder_lock(tmp_path):
        assert find_running(tmp_path) is None


def test_who_looks_for_a_farm_does_not_keep_one_from_starting(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).touch()
    with (tmp_path / LOCK_FILE).open() as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        over = threading.Timer(0.05, fcntl.flock, (look, fcntl.LOCK_UN))
        over.start()
        with data_folder_lock(tmp_path):
            over.join()


def test_two_farms_cannot_share_a_data_folder(tmp_path: Path) -> None:
    with data_folder_lock(tmp_path), pytest.raises(InvalidInput, match="already runs"):
        data_folder_lock(tmp_path).__enter__()


def announce(folder: Path, document: object) -> None:
    (folder / ANNOUNCEMENT_FILE).write_text(json.dumps(document))


def test_a_short_form_stands_for_its_group_before_another_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("variants", "build", "--help") == 0
    assert "--runtime" in capsys.readouterr().out
    assert run("variants", "--help") == 0
    assert "--since" in capsys.readouterr().out
    assert run("devices", "nonsense") == 2
