"""Files of a pass come back as they were written, or not at all."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from string import Template

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.harness.base.pass_output import clocked_ms, with_clocked_lines, with_printed_files
from farm.harness.base.tool_harness import RESULT_FILES, result_files

SHELLS = [["sh"], ["bash"], ["mksh"]]
CONTENT = bytes(range(256)) * 40


def evidence_of(stdout: str, *, code: int = 0) -> Evidence:
    ended = ExitRecord(code=code, duration_s=1.0)
    return Evidence(fence=1, passes=(PassEvidence(name=RESULT_FILES, exit=ended, stdout=stdout),))


def ran(folder: Path, program: str, *, shell: list[str], path: str | None = None) -> Evidence:
    """Run a program as a pass does, in a shell that devices have."""
    words = [
        Template(word).substitute() for word in with_printed_files(("sh", "-c", program), ("a.pb", "b.pb"))
    ]
    env = os.environ if path is None else {**os.environ, "PATH": path}
    done = subprocess.run(
        [*shell, *words[1:]], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    return evidence_of(done.stdout, code=done.returncode)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_files_come_back_as_the_tool_wrote_them(tmp_path: Path, shell: list[str]) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    (tmp_path / "source").write_bytes(CONTENT)
    evidence = ran(tmp_path, "cp source a.pb; printf 'no line end'", shell=shell)
    assert evidence.passes[0].stdout.startswith("no line end\n")
    # It wrote no b.pb.
    assert result_files(evidence) == {"a.pb": CONTENT}


def test_androids_base64_encodes_them_too(tmp_path: Path) -> None:
    toybox = shutil.which("toybox")
    if toybox is None:
        pytest.skip("toybox is not installed")
    (tmp_path / "source").write_bytes(CONTENT)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "base64").symlink_to(toybox)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    assert result_files(ran(tmp_path, "cp source a.pb", shell=["sh"], path=path)) == {"a.pb": CONTENT}


def test_a_tool_that_fails_ends_the_pass_as_it_ended_and_gives_no_file(tmp_path: Path) -> None:
    evidence = ran(tmp_path, "echo content >a.pb; exit 3", shell=["sh"])
    assert evidence.passes[0].exit is not None
    assert evidence.passes[0].exit.code == 3
    assert result_files(evidence) == {}


def test_a_device_without_base64_gives_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.pb").write_bytes(CONTENT)
    words = [Template(word).substitute() for word in with_printed_files(("true",), ("a.pb",))]
    shell = shutil.which("sh") or "sh"
    done = subprocess.run(
        [shell, *words[1:-1], ":"],
        cwd=tmp_path,
        env={"PATH": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert result_files(evidence_of(done.stdout)) == {}


def test_a_file_whose_end_was_cut_off_is_none(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(CONTENT)
    text = ran(tmp_path, "cp source a.pb; echo short >b.pb", shell=["sh"]).passes[0].stdout
    assert set(result_files(evidence_of(text))) == {"a.pb", "b.pb"}
    for kept in range(0, len(text) - 1, 97):
        files = result_files(evidence_of(text[:kept]))
        assert files.get("a.pb", CONTENT) == CONTENT
        assert "b.pb" not in files


@given(text=st.text(alphabet="benchmarkfile_d .pb=AB+/\r\n", max_size=300))
def test_no_text_of_a_device_makes_it_raise(text: str) -> None:
    for stdout in (text, f"benchfarm_file a.pb\n{text}\nbenchfarm_file_end\n"):
        assert all(isinstance(content, bytes) for content in result_files(evidence_of(stdout)).values())


def clocked(shell: str, program: str) -> str:
    words = [Template(word).substitute() for word in with_clocked_lines(("sh", "-c", program))]
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return subprocess.run([path, *words[1:]], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("shell", ["mksh", "dash", "bash"])
def test_a_command_with_clocked_lines_ends_as_the_tool_does(shell: str) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    command = with_clocked_lines(("sh", "-c", "echo out; echo err >&2; exit 7"))
    words = [Template(word).substitute() for word in command]
    ended = subprocess.run([path, *words[1:]], capture_output=True, text=True, check=False)
    assert ended.returncode == 7
    assert [line.split(" ", 1)[1] for line in ended.stdout.splitlines()] == [
        "benchfarm_started",
        "out",
        "err",
    ]
    assert ended.stderr == ""


@pytest.mark.parametrize("shell", ["mksh", "dash", "bash"])
def test_the_time_between_two_lines_of_a_tool_is_that_which_it_took(shell: str) -> None:
    text = clocked(shell, "echo 'a \\ b'; sleep 0.2; echo end >&2; sleep 0.2")
    between_ms = clocked_ms(text, re.compile(r"^a \\ b$"), re.compile("^end$"))
    from_start_ms = clocked_ms(text, None, re.compile("^end$"))
    assert between_ms is not None
    assert from_start_ms is not None
    # The start is told before it; a line may be read late.
    assert from_start_ms >= 200
    assert 0 < between_ms < from_start_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.000000 benchfarm_started\n",
        "1.000000 benchfarm_started\n1.500000 begin\n",
        "1.000000 benchfarm_started\n1.500000 end\n1.600000 begin\n",
        "1.000000 benchfarm_started\n1.500000 begin\n1.500000 end\n",
        "1.000000 benchfarm_started\n1.500000 begin\n1.400000 end\n1.700000 end\n",
        "1.000000 benchfarm_started\n begin\n end\n",
    ],
)
def test_a_line_that_is_missing_or_out_of_order_gives_no_time(text: str) -> None:
    assert clocked_ms(text, re.compile("begin"), re.compile("end")) is None


def test_the_first_line_that_ends_it_counts() -> None:
    text = "1.000000 benchfarm_started\n1.100000 other\n1.250000 end\n9.000000 end\n"
    assert clocked_ms(text, None, re.compile("end")) == 250
