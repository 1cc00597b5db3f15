"""Pages are compared with what really comes."""

from pathlib import Path

import pytest

from tests.e2e.pages.console_page import Step, comes_as_said, console, steps

PAGE = """
# A page

```console
$ echo one
one
$ printf 'two\\n' &&
>   echo three
two
three
```

```text
$ not typed
```
"""


def test_a_page_is_its_console_blocks_in_order() -> None:
    assert [step.command for step in steps(PAGE)] == ["echo one", "printf 'two\\n' &&\n  echo three"]
    assert [step.expected for step in steps(PAGE)] == ["one", "two\nthree"]


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("took 3.5 s", "took 12 s\n"),
        ("clock -3.38 ms", "clock  +582 µs\n"),
        ("a  b", "a b\n"),
        ("first\n...\nlast", "first\nx\ny\nlast\n"),
        ("first\n...\nlast", "first\nlast\n"),
        ("at ... now", "at home now\n"),
        ("digest 0123456789ab", "digest ffffffffffff\n"),
    ],
)
def test_what_differs_from_run_to_run_is_not_compared(expected: str, printed: str) -> None:
    assert comes_as_said(expected, printed)


@pytest.mark.parametrize(
    ("expected", "printed"),
    [("one", "two\n"), ("one", "one\ntwo\n"), ("one\ntwo", "one\n"), ("", "something\n")],
)
def test_other_words_or_lines_are_noticed(expected: str, printed: str) -> None:
    assert not comes_as_said(expected, printed)


def test_of_a_sample_the_first_words_come_in_order() -> None:
    expected = "...\ncandidate  speedup\nint8  2.0x"
    assert comes_as_said(expected, "note: x\ncandidate  a  b\nfloat  1.0x\nint8  undecided\n", is_sample=True)
    assert not comes_as_said(expected, "int8  2.0x\ncandidate  speedup\n", is_sample=True)


def test_a_page_is_played_in_one_folder(tmp_path: Path) -> None:
    with console(tmp_path, environment={"WHO": "ann"}, here_by_said={"OTHER": "$WHO"}) as opened:
        opened.play(Step(command="echo OTHER >file", expected=""))
        opened.play(Step(command="cat file", expected="ann"))


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    with console(tmp_path) as opened, pytest.raises(AssertionError, match="exit code 3"):
        opened.play(Step(command="exit 3", expected=""))


def test_what_stays_running_is_waited_for_and_ended(tmp_path: Path) -> None:
    script = "sh -c 'echo $$ >pid; echo ready; exec sleep 600' &"
    with console(tmp_path) as opened:
        opened.play(Step(command=script, expected="ready"))
        pid = int((tmp_path / "pid").read_text())
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_nothing_is_waited_for_any_more_when_what_it_needs_has_ended(tmp_path: Path) -> None:
    dies = "sh -c 'echo ready; read line <go; echo it broke; exit 1' &"
    with console(tmp_path) as opened:
        opened.play(Step(command="mkfifo go", expected=""))
        opened.play(Step(command=dies, expected="ready"))
        with pytest.raises(AssertionError, match=r"(?s)has ended.*it broke"):
            opened.play(Step(command="echo now >go; until false; do sleep 1; done", expected=""))
