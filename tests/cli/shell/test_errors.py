"""What is typed wrong is told as every error is: a sentence, a hint, and the exit code of the user."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from typer.main import get_command

from farm.cli.shell.main import app, main


def said_of(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """What a slip is told with; none of these gets so far as to need a farm."""
    with pytest.raises(SystemExit) as left:
        main(line.split())
    printed = capsys.readouterr()
    assert left.value.code == 2
    assert printed.out == ""
    return printed.err


@pytest.mark.parametrize(
    ("line", "said", "hint"),
    [
        (
            "run --rounds x -- a",
            "--rounds: 'x' is not a whole number",
            "Process starts of each cell. Default: 5",
        ),
        (
            "run --rounds 2.5 -- a",
            "--rounds: '2.5' is not a whole number",
            "Process starts of each cell. Default: 5",
        ),
        ("run --rounds 0 -- a", "--rounds: 0 is less than 1", "Process starts of each cell. Default: 5"),
        (
            "run --rounds 900 -- a",
            "--rounds: 900 is more than 100",
            "Process starts of each cell. Default: 5",
        ),
        ("explain cell x", "ID: 'x' is not a whole number", "The cell's number, as in `farm speedups`"),
        ("explain cell", "ID is missing", "The cell's number, as in `farm speedups`"),
        ("explain 3", "no such command '3'", "farm explain cell ID, farm explain job ID"),
        ("run --devce x", "there is no option --devce", "did you mean --device?"),
        (
            "speedups --by sock",
            "--by: 'sock' is not one of 'device-model', 'soc', 'android', 'all', 'device'",
            "did you mean soc?",
        ),
        ("run --quicq", "there is no option --quicq", "did you mean --quick?"),
        ("run --shape 1x3", "there is no option --shape", "`farm run -h` lists the options"),
        ("speedups --zzz", "there is no option --zzz", "`farm speedups -h` lists the options"),
        ("devices 3", "got unexpected extra argument(s) (3)", "`farm devices -h` shows the usage"),
        ("speedups x", "MATRIX: 'x' is not a whole number", "Only this matrix, by its number"),
        ("speedups 3 --matrix 4", "MATRIX is 3 but --matrix is 4", "leave one of them out"),
    ],
)
def test_a_slip_is_told_in_one_sentence_with_what_was_meant(
    capsys: pytest.CaptureFixture[str], line: str, said: str, hint: str
) -> None:
    assert said_of(capsys, line) == f"error: {said}\nhint: {hint}\n"


def commands(group: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """Every command that needs arguments, by its words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        elif any(param.param_type_name == "argument" and param.required for param in command.params):
            yield *path, name


@pytest.mark.parametrize("words", list(commands(get_command(app))), ids=" ".join)
def test_a_command_without_its_arguments_names_the_first_and_says_what_it_is(
    capsys: pytest.CaptureFixture[str], words: Sequence[str]
) -> None:
    assert re.fullmatch(r"error: [A-Z_@]+ is missing\nhint: .+\n", said_of(capsys, " ".join(words)))


def test_a_command_no_one_knows_comes_with_those_that_are_like_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = said_of(capsys, "devcies")
    assert said.startswith("error: no such command 'devcies'")
    assert "'devices'" in said


def test_a_group_without_a_command_shows_its_help_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["explain"])
    printed = capsys.readouterr()
    assert left.value.code == 2
    assert "Usage: farm explain" in printed.out + printed.err
    assert "error:" not in printed.err
