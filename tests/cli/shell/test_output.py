"""Listings of any length: JSON as it comes, and tables that end and say so."""

import json
from collections.abc import Iterator

import pytest

from farm.cli.shell.output import MAX_ROWS, first_rows, print_json, print_json_list
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
