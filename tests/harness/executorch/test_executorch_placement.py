"""ExecuTorch's Inspector in each of its forms; models and times are invented."""

import pytest

from farm.core.runs.placement import placement_text
from farm.harness.executorch.placement import executorch_placement, inspector_table_rows

HEADING = [
    "event_block_name",
    "event_name",
    "p10 (ms)",
    "p50 (ms)",
    "p90 (ms)",
    "avg (ms)",
    "min (ms)",
    "max (ms)",
    "op_types",
    "is_delegated_op",
    "delegate_backend_name",
]
ROWS = [
    ["Default", "Method::init", *["21.75"] * 3, "21.8", "21.75", "21.9", "[]", "False", ""],
    [
        "Execute",
        "Convolution (NHWC, F32) IGEMM #1",
        *["0.31"] * 3,
        "0.34",
        "0.31",
        "0.4",
        "[]",
        "True",
        "XnnpackBackend",
    ],
    ["Execute", "DELEGATE_CALL", *["0.51"] * 3, "0.52", "0.51", "0.53", "[]", "False", ""],
    ["Execute", "native_call_softmax.out", *["1e-02"] * 6, "['aten.softmax.int']", "False", ""],
    ["Execute", "OPERATOR_CALL", *["0.02"] * 6, "[]", "False", ""],
]


def framed() -> str:
    rows = [["", *HEADING], *([str(at), *row] for at, row in enumerate(ROWS))]
    between = "├" + "┼".join("─" * 6 for _ in rows[0]) + "┤\n"
    return between.join("│ " + " │ ".join(f"{cell:<12}" for cell in row) + " │\n" for row in rows)


def marked_down() -> str:
    lines = [" | ".join(["", *HEADING]), " | ".join(["--"] * (len(HEADING) + 1))]
    return "\n".join([*lines, *(" | ".join([str(at), *row]) for at, row in enumerate(ROWS))])


def tabbed() -> str:
    return "\n".join(
        "\t".join(row) for row in [["", *HEADING], *([str(at), *row] for at, row in enumerate(ROWS))]
    )


def plain() -> str:
    lines = ["   " + "  ".join(HEADING), *(f"{at}  " + "  ".join(row) for at, row in enumerate(ROWS))]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text", [framed(), marked_down(), tabbed(), plain()], ids=["frame", "md", "tabs", "plain"]
)
def test_every_form_of_the_table_has_the_same_rows(text: str) -> None:
    rows = inspector_table_rows(f"something before\n{text}\nsomething behind\n")
    assert [row.event for row in rows] == [row[1] for row in ROWS]
    assert [(row.delegated, row.backend) for row in rows[:2]] == [(False, ""), (True, "XnnpackBackend")]


@pytest.mark.parametrize(
    "text", [framed(), marked_down(), tabbed(), plain()], ids=["frame", "md", "tabs", "plain"]
)
def test_operators_are_counted_once_and_no_call_that_holds_them(text: str) -> None:
    found = executorch_placement(text)
    assert found is not None
    assert {share.by: share.nodes for share in found.shares} == {"XnnpackBackend": 1, "portable": 1}
    assert placement_text(found) == "cpu 2/2"


def test_a_delegate_that_tells_nothing_of_its_inside_has_its_calls() -> None:
    calls = [ROWS[2], ROWS[2], ROWS[3]]
    text = "\n".join(["  ".join(HEADING), *("  ".join(row) for row in calls)])
    found = executorch_placement(text)
    assert found is not None
    assert {share.by: share.nodes for share in found.shares} == {"delegate": 2, "portable": 1}


def test_a_table_in_cycles_is_read() -> None:
    heading = "event_block_name  event_name  avg (cycles)  op_types  is_delegated_op"
    text = f"{heading}\nExecute  add  2500  []  True\n"
    assert [row.event for row in inspector_table_rows(text)] == ["add"]


def test_rows_without_a_heading_are_read() -> None:
    assert [row.event for row in inspector_table_rows("  ".join(ROWS[0]))] == ["Method::init"]
    rows = inspector_table_rows("Execute  native_call_add.out  0.25  []  False")
    assert [row.event for row in rows] == ["native_call_add.out"]


def test_a_row_of_many_figures_or_blanks_is_gone_through_once() -> None:
    """Of either kind a full output took hours."""
    heading = "event_block_name  event_name  avg (ms)  is_delegated_op\n"
    rows = ["a  b" + "  1" * 100 + "  xTrue True x y", "a" + " " * 380 + "True b c"]
    assert inspector_table_rows(heading + "\n".join(rows * 500)) == []
