"""`--gate`: its words, the rounds that it adds, and what it prints."""

from pathlib import Path
from typing import Any

import pytest

from farm.cli.results.gate import (
    Gate,
    check_gate_is_watched,
    deciding_rounds,
    judge,
    parse_gate,
    print_gate,
    summary_text,
    write_summary,
)
from farm.core.base.ids import CellId
from farm.core.errors import InvalidInput
from farm.core.matrices.matrix import RejectionKind
from farm.core.matrices.rounds import SequentialRounds
from farm.core.results.statistics.gate import GateOutcome
from farm.wire.documents.matrices.matrix import ROUNDS_MODEL
from farm.wire.documents.results.speedups import SpeedupView
from tests.cli.matrices.test_matrix import run
from tests.support.farm.api_server import scripted_server
from tests.support.sample_views import NOON, duplicate_view, matrix_view, speedup_view

GATE = Gate(margin=0.03)
NOTHING: dict[str, Any] = {
    **dict.fromkeys(("speedup", "baseline_ns", "candidate_ns", "ci_low", "ci_high", "log_error", "degrees")),
    "rounds": 0,
}


def row(ratio: float, width: float, **changes: Any) -> SpeedupView:
    """A comparison of ten rounds whose interval reaches so far to each side."""
    values = {
        "speedup": ratio,
        "baseline_ns": ratio * 1e6,
        "candidate_ns": 1e6,
        "ci_low": ratio * (1 - width),
        "ci_high": ratio * (1 + width),
        "rounds": 10,
        "log_error": width / 2.26,
        "degrees": 9.0,
    }
    return speedup_view(**{**values, **changes})


PASSED, SLOWER, OPEN = row(1.0, 0.01), row(0.8, 0.01), row(0.98, 0.02, candidate="int8|core")
MISSING = row(1.0, 0.01, **NOTHING)


@pytest.mark.parametrize(
    ("views", "outcome", "code", "coverage"),
    [
        ([PASSED], GateOutcome.PASSED, 0, (1, 1)),
        ([PASSED, SLOWER, OPEN], GateOutcome.SLOWER, 7, (2, 3)),
        ([PASSED, OPEN], GateOutcome.UNDECIDED, 8, (1, 2)),
        ([PASSED, MISSING], GateOutcome.UNDECIDED, 8, (1, 2)),
        ([MISSING], GateOutcome.NOT_MEASURED, 9, (0, 1)),
        ([], GateOutcome.NOT_MEASURED, 9, (0, 0)),
        ([PASSED, duplicate_view()], GateOutcome.PASSED, 0, (1, 1)),
    ],
)
def test_each_answer_has_its_exit_code_and_coverage(
    views: list[SpeedupView], outcome: GateOutcome, code: int, coverage: tuple[int, int]
) -> None:
    judged = judge(GATE, views)
    assert (judged.outcome, judged.outcome.exit_code) == (outcome, code)
    assert (judged.answered, judged.asked) == coverage
    says_why = "`farm matrix jobs 15` says why" in summary_text(judged.model_copy(update={"matrix_id": 15}))
    assert says_why == (MISSING in views)


@pytest.mark.parametrize(
    ("kind", "allow_missing", "outcome"),
    [
        ("excluded", False, GateOutcome.PASSED),
        ("unsupported", False, GateOutcome.UNDECIDED),
        ("unsupported", True, GateOutcome.UNDECIDED),
        ("no_program", True, GateOutcome.UNDECIDED),
        ("no_variant", False, GateOutcome.UNDECIDED),
        ("no_variant", True, GateOutcome.PASSED),
        ("expired", True, GateOutcome.PASSED),
    ],
)
def test_a_cell_that_cannot_run_does_not_pass(
    kind: str, allow_missing: bool, outcome: GateOutcome, capsys: pytest.CaptureFixture[str]
) -> None:
    (rejection,) = matrix_view().rejected_list
    matrix = matrix_view(rejected_list=(rejection.model_copy(update={"kind": RejectionKind(kind)}),))
    judged = judge(GATE, [PASSED], matrix, allow_missing=allow_missing)
    assert (judged.outcome, judged.answered, judged.not_run) == (outcome, 1, int(kind != "excluded"))
    assert judge(GATE, [SLOWER], matrix, allow_missing=allow_missing).outcome is GateOutcome.SLOWER
    if outcome is GateOutcome.UNDECIDED:
        print_gate(GATE, judged, can_decide=True)
        told = capsys.readouterr().err
        assert told == "gate not-slower=3%: undecided, 1 of 2 cells answered; 1 cell cannot run\n"


def test_a_gate_of_a_finished_matrix_asks_cells_that_cannot_run_unless_it_selects_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (rejection,) = matrix_view().rejected_list
    unsupported = rejection.model_copy(update={"kind": RejectionKind.UNSUPPORTED})
    matrix = matrix_view(rejected_list=(unsupported,))
    answers = {
        "GET /api/v1/speedups": (200, [PASSED.model_dump(mode="json")]),
        f"GET /api/v1/matrices/{matrix.matrix_id}": (200, matrix.model_dump(mode="json")),
    }
    with scripted_server(answers) as url:
        monkeypatch.setenv("FARM_URL", url)
        gate = ("speedups", matrix.matrix_id, "--gate", "not-slower=3%")
        assert run(*gate) == 8
        assert "1 of 2 cells answered; 1 cell cannot run" in capsys.readouterr().err
        assert run(*gate, "--device", "phone-1") == 0


@pytest.mark.parametrize(("option", "code"), [((), 8), (("--allow-missing",), 0)])
def test_a_gate_is_undecided_where_a_file_is_missing(
    option: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rejection,) = matrix_view().rejected_list
    missing = rejection.model_copy(update={"kind": RejectionKind.NO_VARIANT})
    matrix = matrix_view(rejected_list=(missing,), state="finished", finished_at=NOON, jobs_by_outcome={})
    path = f"GET /api/v1/matrices/{matrix.matrix_id}"
    answers = {
        "GET /api/v1/speedups": (200, [PASSED.model_dump(mode="json")]),
        path: (200, matrix.model_dump(mode="json")),
        f"{path}/results": (200, []),
        "GET /api/v1/jobs": (200, []),
    }
    with scripted_server(answers) as url:
        monkeypatch.setenv("FARM_URL", url)
        assert run("matrix", "watch", matrix.matrix_id, "--gate", "not-slower=3%", *option) == code


def test_without_a_margin_that_of_the_matrix_counts() -> None:
    view = row(0.985, 0.012, margin=0.05)
    assert judge(Gate(), [view]).outcome is GateOutcome.PASSED
    assert judge(Gate(margin=0.01), [view]).outcome is GateOutcome.UNDECIDED


def test_an_undecided_gate_says_how_many_rounds_would_decide(capsys: pytest.CaptureFixture[str]) -> None:
    judged = judge(GATE, [PASSED, OPEN])
    assert judged.further_rounds
    print_gate(GATE, judged, can_decide=True, matrix=matrix_view(rounds=10))
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == (
        f"gate not-slower=3%: undecided, 1 of 2 cells answered; about {judged.further_rounds} further rounds "
        "would decide; --decide adds them, up to 40 rounds in all"
    )
    assert told[0].startswith(
        "gate not-slower=3%: int8|core on phone-1: undecided: 0.980x, 0.960x to 1.000x, "
    )


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ((5, 40), "at most 40 rounds were allowed: measure again with --rounds 40, or with at_most: 100 in"),
        ((40, 100), "would decide; 100 rounds are the most that a matrix may have"),
        ((10, 10), "further rounds would decide\n"),
        ((100, 100), "would decide; 100 rounds are the most that a matrix may have"),
    ],
)
def test_a_gate_that_had_all_its_rounds_says_how_to_have_more(
    bounds: tuple[int, int], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds, max_rounds = bounds
    matrix = matrix_view(rounds=rounds, max_rounds=max_rounds)
    print_gate(GATE, judge(GATE, [OPEN]), matrix=matrix)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ((10, 10), "--decide adds them, up to 40 rounds in all"),
        ((40, 40), "--decide adds them, up to 100 rounds in all"),
        ((100, 100), "100 rounds are the most that a matrix may have"),
        # A cell of ten rounds, whose matrix says itself how far it may grow.
        ((5, 20), "--decide adds them, up to the matrix's own at_most: 20"),
        ((5, 10), "at most 10 rounds were allowed: measure again with --rounds 40, or with at_most: 100 in"),
    ],
)
def test_a_gate_says_of_decide_only_what_it_would_add(
    bounds: tuple[int, int], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds, max_rounds = bounds
    matrix = matrix_view(rounds=rounds, max_rounds=max_rounds)
    print_gate(GATE, judge(GATE, [OPEN]), can_decide=True, matrix=matrix)
    said = capsys.readouterr().err
    assert f"would decide; {told}" in said
    assert ("--decide" in said) == ("--decide" in told)


@pytest.mark.parametrize("crashed", ["candidate", "baseline"])
def test_a_gate_without_any_measurement_says_why(crashed: str, capsys: pytest.CaptureFixture[str]) -> None:
    why = "failed: program crashed (exit code 134, SIGABRT)"
    other = {"disturbed: too hot": 1}
    cells = matrix_view().cell_list
    broken = cells[0].model_copy(update={"value_ns": None, "problems": {**other, why: 5}})
    timed = cells[0].model_copy(update={"cell_id": CellId(99), "value_ns": 1e6, "problems": other})
    key = "cell_id" if crashed == "candidate" else "baseline_cell_id"
    ids = {"cell_id": timed.cell_id, "baseline_cell_id": timed.cell_id, key: broken.cell_id}
    judged = judge(GATE, [MISSING.model_copy(update=ids)], matrix_view(cell_list=(broken, timed)))
    print_gate(GATE, judged)
    assert f"not measured: {why}" in capsys.readouterr().err
    assert f"not measured, {why} |" in summary_text(judged)


def test_what_is_slower_in_tables_and_undecided_for_the_gate_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view = judge(GATE, [row(0.85, 0.1)])
    assert view.outcome is GateOutcome.UNDECIDED
    print_gate(GATE, view)
    why = "all of it below 0.971x, but a gate calls slower only what chance shows in 1 of 2000"
    assert why in capsys.readouterr().err
    assert why in summary_text(view)


@pytest.mark.parametrize("place", [".", "absent/gate.md"])
def test_a_summary_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path, place: str
) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        check_gate_is_watched(GATE, watch=True, summary=tmp_path / place)
    check_gate_is_watched(GATE, watch=True, summary=tmp_path / "gate.md")
    assert not (tmp_path / "gate.md").exists()


def test_a_gate_without_comparisons_says_that_there_are_none() -> None:
    assert "nothing has a baseline" in summary_text(judge(GATE, []))


def test_rounds_that_only_make_an_interval_are_not_said_to_decide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = row(0.99, 0.01, rounds=3, ci_low=None, ci_high=None, log_error=None, degrees=None)
    view = judge(GATE, [PASSED, few])
    print_gate(GATE, view, can_decide=True)
    printed = capsys.readouterr().err + summary_text(view)
    assert printed.count("at least 2 further rounds needed") == 4
    assert "would decide" not in printed


def test_the_summary_is_a_table_whose_cells_no_label_can_break(tmp_path: Path) -> None:
    judged = judge(GATE, [SLOWER, OPEN])
    text = summary_text(judged)
    assert text.splitlines()[:3] == [
        "### ❌ Slower",
        "",
        "Not slower by more than 3 %: slower, 1 of 2 cells answered.",
    ]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {8}
    assert "int8\\|core" in text
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    write_summary(judged, file)
    assert file.read_text() == f"before\n{text}"


def test_the_summary_has_every_row() -> None:
    judged = judge(GATE, [PASSED, MISSING, SLOWER])
    assert [each.outcome for each in judged.rows] == [
        GateOutcome.PASSED,
        GateOutcome.NOT_MEASURED,
        GateOutcome.SLOWER,
    ]


@pytest.mark.parametrize(
    ("rounds", "at_least", "at_most"),
    [(None, 10, 40), (1, 5, 40), (5, 5, 40), (20, 20, 40), (40, 40, 100), (100, 99, 100)],
)
def test_rounds_that_decide_are_a_matrix_that_grows(rounds: int | None, at_least: int, at_most: int) -> None:
    for gate, margin, until in (
        (None, None, None),
        (GATE, None, 0.03),
        (Gate(), 0.01, 0.01),
        (Gate(), None, 0.02),
    ):
        grown = deciding_rounds(rounds, gate, margin=margin)
        checked = SequentialRounds(**dict(ROUNDS_MODEL.model_validate(grown)))
        assert checked == SequentialRounds(at_least=at_least, at_most=at_most, not_slower=until)


def test_a_matrix_that_grows_keeps_its_bounds() -> None:
    own = {"at_least": 8, "at_most": 20, "until": {"half_width": "1%"}}
    assert deciding_rounds(own, GATE) == {"at_least": 8, "at_most": 20, "not_slower": 0.03}
    assert deciding_rounds("many", GATE) == "many"


def test_a_gate_is_written_as_it_was_read() -> None:
    for text in ("not-slower", "not-slower=3%", "not-slower=0.5%"):
        assert str(parse_gate(text)) == text
