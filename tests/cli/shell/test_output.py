"""Listings of any length: JSON as it comes, and tables that end and say so."""

import json
from collections.abc import Callable, Iterator

import pytest

from farm.cli.shell.output import (
    MAX_ROWS,
    first_rows,
    print_data,
    print_json,
    print_json_list,
    print_notice,
    print_unchanged,
)
from farm.cli.shell.tables import Listing, name
from farm.wire.documents.matrices.matrices import Rejection


def rejected(count: int) -> Iterator[Rejection]:
    return (
        Rejection(index=index, device_id=None, device_label=None, label="é", kind="excluded", reason="no")
        for index in range(count)
    )


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_that_comes_piece_by_piece_is_printed_as_a_whole_one_is(
    capsys: pytest.CaptureFixture[str], count: int
) -> None:
    print_json_list(rejected(count))
    in_pieces = capsys.readouterr().out
    print_json([view.model_dump(mode="json") for view in rejected(count)])
    assert in_pieces == capsys.readouterr().out
    assert len(json.loads(in_pieces)) == count


def test_a_document_is_printed_before_the_next_one_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    def asked() -> Iterator[Rejection]:
        for view in rejected(3):
            yield view
            assert f'"index": {view.index}' in capsys.readouterr().out

    print_json_list(asked())


@pytest.mark.parametrize(("count", "is_said"), [(MAX_ROWS, False), (MAX_ROWS + 1, True), (10**9, True)])
def test_a_table_ends_and_says_where_all_rows_are(
    capsys: pytest.CaptureFixture[str], count: int, is_said: bool
) -> None:
    rows = first_rows(rejected(count), where_all_are="ask --json")
    assert len(rows) == MAX_ROWS
    assert ("ask --json" in capsys.readouterr().err) is is_said


#: Sets the clipboard (OSC 52), clears the screen (CSI of 7 and of 8 bits), returns, reverses what follows.
HOSTILE = "a\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b2J\rb\u202ec"
OBEYED = "\x1b\x07\x9b\r\u202e"


@pytest.mark.parametrize(
    "show",
    [
        print_data,
        print_notice,
        lambda text: print_data(Listing(name("n", str))([text])),
        lambda text: print_json({text: [text]}),
    ],
    ids=["text", "notice", "table", "json"],
)
def test_a_terminal_gets_no_control_sequences_of_others(
    capsys: pytest.CaptureFixture[str], show: Callable[[str], None]
) -> None:
    show(HOSTILE)
    printed = "".join(capsys.readouterr())
    assert "52;c;" in printed
    assert not set(printed) & set(OBEYED)


def test_a_json_reader_gets_control_characters_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": HOSTILE})
    assert json.loads(capsys.readouterr().out) == {"text": HOSTILE}


def test_output_of_a_program_is_unchanged_in_a_pipe_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_unchanged(HOSTILE)
    assert capsys.readouterr().out == HOSTILE
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_unchanged(HOSTILE)
    assert not set(capsys.readouterr().out) & set(OBEYED)
