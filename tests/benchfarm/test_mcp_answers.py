"""Answers of `farm mcp` are bounded: of a matrix with thousands of cells, too."""

from typing import Any

import pytest
from pydantic_core import to_json

from farm.cli.farm.mcp_answers import LISTED, PAGE_CHARACTERS, document, page


def test_a_document_leaves_out_nulls_and_counts_what_its_lists_leave_out() -> None:
    view = {"name": "big", "eta_s": None, "plan": {"cell_list": [{"cell_id": n} for n in range(5000)]}}
    answer = document(view)
    assert answer.keys() == {"name", "plan"}
    assert len(answer["plan"]["cell_list"]) == LISTED
    assert answer["plan"]["cell_list_left_out"] == 5000 - LISTED


def test_pages_of_long_rows_end_early_and_show_every_row_once() -> None:
    rows = [{"cell_id": n, "settings": "x" * 3000} for n in range(40)]
    seen, skip = [], 0
    while skip is not None:
        answer = page("cell_list", rows, 50, skip)
        assert len(to_json(answer)) < PAGE_CHARACTERS + 100
        seen += [row["cell_id"] for row in answer["cell_list"]]
        skip = answer["next_skip"]
    assert seen == list(range(40))


def test_a_row_as_long_as_a_page_is_shown_alone() -> None:
    answer = page("series", [{"points": ["x" * 790] * LISTED}, {"points": ["x" * 790]}], 50, 0)
    assert (len(answer["series"]), answer["next_skip"]) == (1, 1)


@pytest.mark.parametrize(
    "view",
    [
        {"evidence": {"trace": "x" * 10**6, "passes": [{"log": "x" * 10**6}] * 50}},
        {"rejected": [{"labels": ["x" * 30] * 50, "device_ids": ["x" * 16] * 100}] * 50},
    ],
)
def test_a_document_of_long_texts_and_of_lists_in_lists_is_no_longer_than_a_page(view: Any) -> None:
    assert len(to_json(document(view))) <= PAGE_CHARACTERS


def test_of_a_long_text_the_end_is_shown() -> None:
    assert document({"stdout": "x" * 5_000 + "error: no model"})["stdout"].endswith("xerror: no model")
