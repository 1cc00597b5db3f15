"""What a bundle may be."""

import re
from pathlib import Path

import pytest

import agents.device.run
from farm.core.base.ids import digest_of
from farm.core.errors import InvalidInput
from farm.core.programs.bundle import (
    MAX_FILES,
    PLAIN_COMMAND,
    RUN_FILES,
    Bundle,
    BundleFile,
    check_bundle,
)
from farm.core.runs.plan import MAX_PATH_BYTES

SUPERVISOR = Path(agents.device.run.__file__).with_name("supervisor.sh").read_text()


def file(path: str, *, executable: bool = False, size_bytes: int = 1) -> BundleFile:
    return BundleFile(
        path=path, digest=digest_of(repr(path).encode()), size_bytes=size_bytes, executable=executable
    )


def bundle(*paths: str, env: dict[str, str] | None = None, command: str | None = None) -> Bundle:
    return Bundle(
        files=(file("bench", executable=True), *map(file, paths)),
        entry="bench",
        env=env or {},
        command=PLAIN_COMMAND if command is None else tuple(command.split()),
    )


@pytest.mark.parametrize(
    "path",
    ["lib/libfoo.so", "a b.txt", "data/größe.bin", "$ORIGIN", "it's", ".hidden", "-n", "x" * MAX_PATH_BYTES],
)
def test_a_plain_path_below_the_runs_folder_may_be(path: str) -> None:
    check_bundle(bundle(path))


@pytest.mark.parametrize(
    "path",
    [
        *("", "/etc/passwd", "../x", "lib/../../x", "lib//x", "./x", "lib/", " x", "x "),
        *("a\0b", "a\nb", "\x1b[2J", "\udcff", "x" * (MAX_PATH_BYTES + 1), "ü" * MAX_PATH_BYTES),
    ],
)
def test_a_path_that_is_none_or_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="the path"):
        check_bundle(bundle(path))


@pytest.mark.parametrize("path", ["stdout", "exit.new", "run.sh", "harness/libfoo.so", "lock.new/x"])
def test_names_that_every_run_needs_itself_are_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="every run needs itself"):
        check_bundle(bundle(path))


def test_a_program_of_one_file_may_have_any_name_since_no_link_is_made_for_it() -> None:
    check_bundle(Bundle(files=(file("harness", executable=True),), entry="harness"))


def test_every_name_that_the_supervisor_uses_in_a_runs_folder_is_known() -> None:
    used = set(re.findall(r"\$run/([a-z_]+(?:\.[a-z]+)*)", SUPERVISOR))
    assert "run.sh" in used
    assert {name.removesuffix(".new") for name in used} <= RUN_FILES


@pytest.mark.parametrize("paths", [("lib", "lib/x"), ("lib/x", "lib"), ("x", "x"), ("a/b/c", "a/b")])
def test_a_path_is_one_file_and_no_folder(paths: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="is there twice"):
        check_bundle(bundle(*paths))


def test_what_is_started_is_there_and_executable() -> None:
    with pytest.raises(InvalidInput, match="not in the bundle"):
        check_bundle(Bundle(files=(file("bench", executable=True),), entry="other"))
    with pytest.raises(InvalidInput, match="not executable"):
        check_bundle(Bundle(files=(file("bench"),), entry="bench"))


def test_files_are_limited_in_number_and_size() -> None:
    with pytest.raises(InvalidInput, match=f"at most {MAX_FILES}"):
        check_bundle(bundle(*(f"data/{number}" for number in range(MAX_FILES))))
    huge = Bundle(files=(file("bench", executable=True, size_bytes=2**40),), entry="bench")
    with pytest.raises(InvalidInput, match="bytes"):
        check_bundle(huge)
    with pytest.raises(InvalidInput, match="one file at least"):
        check_bundle(Bundle(files=(), entry=""))


@pytest.mark.parametrize("value", ["${work}/lib:${work}", "$work/lib", "costs $$5", "", "a b'c\"d"])
def test_a_variable_may_name_the_runs_folder(value: str) -> None:
    check_bundle(bundle(env={"LD_LIBRARY_PATH": value}))


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"A-B": "x"}, "no name of a variable"),
        ({"": "x"}, "no name of a variable"),
        ({"X;reboot": "x"}, "no name of a variable"),
        ({"BENCHFARM_RUN": "1"}, "the farm's own"),
        ({"X": "${home}"}, "nothing fills"),
        ({"X": "${file_program}"}, "nothing fills"),
        ({"X": "5$"}, "begins no placeholder"),
        ({"X": "a\nb"}, "control character"),
        ({"X": "a" * 5000}, "longer than"),
        ({f"X{number}": "" for number in range(60)}, "at most"),
    ],
)
def test_a_variable_that_could_not_be_set_is_refused(env: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_bundle(bundle(env=env))


def test_a_command_may_wrap_the_program() -> None:
    check_bundle(bundle(command="taskset f0 ${work}/wrap ${program} --fast ${arguments}"))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("${program}", "needs \\${arguments}"),
        ("taskset f0 ${arguments}", "needs \\${program}"),
        ("${program} ${program} ${arguments}", "once"),
        ("${program} ${arguments} ${model}", "nothing fills"),
        ("X=${program} ${program} ${arguments}", "nothing fills"),
        ("${program} ${arguments} " + "x " * 60, "at most"),
    ],
)
def test_a_command_that_could_not_be_filled_in_is_refused(command: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_bundle(bundle(command=command))
