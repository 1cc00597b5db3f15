"""`--gate`: what every comparison must show, for scripts that ask for a yes or no."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.extras import require_module
from farm.cli.shell.output import print_notice, print_unchanged
from farm.core.base.ids import CellId
from farm.core.base.units import ratio_text, share_of_percent
from farm.core.errors import FarmUnreachable, InvalidInput
from farm.core.matrices.matrix import MAX_ROUNDS, USUAL_ROUNDS, RejectionKind
from farm.core.results.statistics.gate import GATE_ERROR, GateOutcome, judge_gate
from farm.core.runs.measurement import DEFAULT_MARGIN, MIN_ROUNDS
from farm.presentation.labels import device_name
from farm.presentation.text import plural, speedup_text
from farm.wire.documents.matrices.matrices import MatrixView
from farm.wire.documents.results.speedups import GateRowView, GateView, SpeedupView

_HINT = "write --gate not-slower, or with the margin --gate not-slower=3%, at most 50 %"
#: The rounds of a matrix that grows, unless it says otherwise.
_AT_MOST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What every candidate must show: the lower end of its interval is above 1 / (1 + margin)."""

    #: None: that of the matrix.
    margin: float | None = None

    def __str__(self) -> str:
        return "not-slower" if self.margin is None else f"not-slower={100 * self.margin:.4g}%"


def parse_gate(text: str | Gate) -> Gate:
    """Parse `not-slower` or `not-slower=3%`.

    Raises:
        InvalidInput: it is neither, or scipy is not installed.
    """
    if isinstance(text, Gate):
        return text
    name, has_margin, percent = text.strip().partition("=")
    margin = share_of_percent(percent)
    if name != "not-slower" or (has_margin and (margin is None or margin > 0.5)):
        raise InvalidInput(f"{text!r} is no gate", hint=_HINT)
    # Its verdict needs it, after minutes of measuring.
    require_module("scipy")
    return Gate(margin=margin)


GateOption = Annotated[
    Gate | None,
    typer.Option(
        "--gate",
        parser=parse_gate,
        metavar="not-slower[=3%]",
        help="Exit with 0 if every candidate is shown to be not slower than the margin allows, with 7 if one "
        "is slower, 8 if undecided, 9 if nothing was measured.",
    ),
]
Decide = Annotated[
    bool,
    typer.Option(
        "--decide", help="Add rounds until every cell is decided, or has 40; see `rounds` in docs/matrix.md."
    ),
]
Summary = Annotated[
    Path | None,
    typer.Option(
        "--summary", metavar="FILE", help="Also write the gate's answer as Markdown, `-` is stdout."
    ),
]


def check_gate_is_watched(
    gate: Gate | None, *, watch: bool, summary: Path | None = None, as_json: bool = False
) -> None:
    """Refuse a gate for numbers that are not waited for, and a summary that would not be written.

    Raises:
        InvalidInput: there is a gate and no watching, a summary and no gate or no file for it, or both go to
            stdout.
    """
    if gate is not None and not watch:
        raise InvalidInput("--gate asks for numbers that are not there yet", hint="add --watch")
    if summary is not None and gate is None:
        raise InvalidInput("--summary is that of a gate", hint="add --gate not-slower")
    if str(summary) == "-" and as_json:
        raise InvalidInput(
            "--json and --summary would both go to stdout", hint="name a file: --summary gate.md"
        )
    # It is written after minutes of measuring.
    if summary is not None and str(summary) != "-" and not _is_writable(summary):
        raise InvalidInput(
            f"--summary {summary} cannot be written", hint="name a file in a folder that exists"
        )


def _is_writable(file: Path) -> bool:
    return not file.is_dir() and os.access(file if file.exists() else file.parent, os.W_OK)


def deciding_rounds(rounds: object, gate: Gate | None, *, margin: object = None) -> object:
    """Return `rounds` of a matrix that grows until its cells are decided, by the gate where there is one.

    Args:
        rounds: of the matrix as it is written; what is wrong in it stays, for the farm to refuse.
        gate: whose margin counts.
        margin: `equivalence_margin` of the matrix, for a gate without a margin of its own.
    """
    until: dict[str, object] = {"until": "decided"}
    if gate is not None:
        until = {"not_slower": gate.margin if gate.margin is not None else margin or DEFAULT_MARGIN}
    if isinstance(rounds, Mapping):
        return {**{name: value for name, value in rounds.items() if name != "until"}, **until}
    count = USUAL_ROUNDS if rounds is None else rounds
    if not isinstance(count, int) or count > MAX_ROUNDS:
        return rounds
    at_most = _grown_at_most(count)
    return {"at_least": max(MIN_ROUNDS, min(count, at_most - 1)), "at_most": at_most, **until}


def _grown_at_most(rounds: int) -> int:
    """Return up to how many rounds `--decide` lets a matrix grow that names so many."""
    return _AT_MOST if rounds < _AT_MOST else MAX_ROUNDS


def judge(
    gate: Gate,
    compared: Sequence[SpeedupView],
    matrix: MatrixView | None = None,
    *,
    allow_missing: bool = False,
) -> GateView:
    """Return what a gate says of comparisons; A/A pairs are not asked.

    Args:
        gate: what is asked.
        compared: all comparisons of a matrix, or of several.
        matrix: whose cells that cannot run are asked, too, and do not pass; those that it excludes itself
            are not.
        allow_missing: cells whose files are missing may have no answer.
    """
    asked = [view for view in compared if not view.aa]
    margin = gate.margin
    if margin is None:
        margin = min((view.margin for view in asked), default=DEFAULT_MARGIN)
    looks = max((view.interval.looks for view in asked), default=0)
    outcome, rows = judge_gate(asked, margin=margin, looks=max(1, looks))
    undecided = [row.further_rounds for row in rows if row.outcome is GateOutcome.UNDECIDED]
    further = [rounds for rounds in undecided if rounds is not None]
    rejected = () if matrix is None else matrix.rejected_list
    not_run = [rejection.kind for rejection in rejected if rejection.kind is not RejectionKind.EXCLUDED]
    problems = {} if matrix is None else _problems(matrix)
    if outcome is GateOutcome.PASSED and not all(kind.wants_file and allow_missing for kind in not_run):
        outcome = GateOutcome.UNDECIDED
    return GateView(
        matrix_id=None if matrix is None else matrix.matrix_id,
        outcome=outcome,
        margin=margin,
        answered=sum(row.outcome in (GateOutcome.PASSED, GateOutcome.SLOWER) for row in rows),
        asked=len(rows) + len(not_run),
        not_run=len(not_run),
        further_rounds=max(further, default=0) if len(further) == len(undecided) else None,
        rows=tuple(
            GateRowView.of(
                row,
                view,
                cell_id=view.cell_id,
                problem=problems.get(view.cell_id) or problems.get(view.baseline_cell_id),
            )
            for row, view in zip(rows, asked, strict=True)
        ),
    )


def _problems(matrix: MatrixView) -> dict[CellId, str]:
    """Return the most frequent problem of each cell that has no time."""
    return {
        cell.cell_id: max(cell.problems, key=cell.problems.__getitem__)
        for cell in matrix.cell_list
        if cell.value_ns is None and cell.problems
    }


def print_gate(
    gate: Gate, view: GateView, *, can_decide: bool = False, matrix: MatrixView | None = None
) -> None:
    """Print what a gate says: the rows that do not pass, and the whole.

    Args:
        gate: what is asked.
        view: what it says.
        can_decide: the matrix was submitted without `--decide`.
        matrix: whose bounds say how to have further rounds; None: nothing is said of that.
    """
    for row in view.rows:
        if row.outcome is not GateOutcome.PASSED:
            print_notice(f"gate {gate}: {row.candidate} on {device_name(row)}: {_row_text(row, view.margin)}")
    is_open = view.outcome is GateOutcome.UNDECIDED and view.further_rounds
    more = "" if matrix is None or not is_open else _more_rounds_text(view, matrix, can_decide=can_decide)
    print_notice(f"gate {gate}: {whole_text(view)}{more}")


def _more_rounds_text(view: GateView, matrix: MatrixView, *, can_decide: bool) -> str:
    """Return how to measure further rounds; empty where no option or bound says it."""
    grows = matrix.max_rounds > matrix.rounds
    if can_decide and not grows and matrix.rounds < MAX_ROUNDS:
        return f"; --decide adds them, up to {_grown_at_most(matrix.rounds)} rounds in all"
    undecided = [row for row in view.rows if row.outcome is GateOutcome.UNDECIDED]
    # Its own condition ended it, and the gate's takes the place of that.
    if can_decide and grows and any(row.rounds < matrix.max_rounds for row in undecided):
        return f"; --decide adds them, up to the matrix's own at_most: {matrix.max_rounds}"
    if matrix.max_rounds == MAX_ROUNDS:
        return f"; {MAX_ROUNDS} rounds are the most that a matrix may have"
    if not grows:
        return ""
    return (
        f"; at most {matrix.max_rounds} rounds were allowed: measure again with --rounds {_AT_MOST}, or with "
        f"at_most: {MAX_ROUNDS} in the matrix"
    )


def _row_text(row: GateRowView, margin: float) -> str:
    if row.outcome is GateOutcome.NOT_MEASURED:
        return f"not measured{f': {row.problem}' if row.problem else ''}"
    allowed = ratio_text(1 / (1 + margin))
    interval = speedup_text(row.speedup, row.ci_low, row.ci_high)
    if row.outcome is GateOutcome.SLOWER:
        return f"slower: {interval}, all of it below {allowed}"
    further = further_text(row.further_rounds, has_interval=row.ci_low is not None)
    wanted = _near_slower_text(row, margin) or f"above {allowed} is needed"
    return f"undecided: {interval}, {wanted}{f'; {further}' if further else ''}"


def _near_slower_text(row: GateRowView, margin: float) -> str:
    """Return why a row whose whole interval is below the margin, `slower` in tables, is undecided yet."""
    allowed = 1 / (1 + margin)
    if row.outcome is not GateOutcome.UNDECIDED or row.ci_high is None or row.ci_high >= allowed:
        return ""
    return (
        f"all of it below {ratio_text(allowed)}, but a gate calls slower only what chance shows in 1 of "
        f"{1 / GATE_ERROR:.0f}"
    )


def further_text(rounds: int | None, *, has_interval: bool) -> str:
    """Return how many further rounds would decide; empty where none are needed.

    Args:
        rounds: None for more than are named.
        has_interval: without one, the rounds make an interval, which need not decide.
    """
    if rounds is None:
        return "more than 1000 further rounds would be needed"
    if not rounds:
        return ""
    if not has_interval:
        return f"at least {plural(rounds, 'further round')} needed"
    return f"about {plural(rounds, 'further round')} would decide"


def whole_text(view: GateView) -> str:
    """Return the answer of a gate in one line, with its coverage."""
    coverage = f"{view.answered} of {plural(view.asked, 'cell')} answered"
    match view.outcome:
        case GateOutcome.NOT_MEASURED:
            parts = ["nothing was measured", coverage] if view.asked else ["nothing has a baseline"]
            return "; ".join(filter(None, [", ".join(parts), _why_not_measured(view)]))
        case GateOutcome.UNDECIDED:
            not_run = f"{plural(view.not_run, 'cell')} cannot run" if view.not_run else ""
            undecided = [row for row in view.rows if row.outcome is GateOutcome.UNDECIDED]
            has_interval = all(row.ci_low is not None for row in undecided)
            further = further_text(view.further_rounds, has_interval=has_interval)
            why = _why_not_measured(view)
            return "; ".join(filter(None, [f"undecided, {coverage}", not_run, further, why]))
        case _:
            return f"{view.outcome}, {coverage}"


def _why_not_measured(view: GateView) -> str:
    """Return where the reasons are why cells have no usable measurement; empty where all have one."""
    is_missing = any(row.outcome is GateOutcome.NOT_MEASURED for row in view.rows)
    return f"`farm matrix jobs {view.matrix_id}` says why" if is_missing and view.matrix_id else ""


def summary_text(view: GateView) -> str:
    """Return what a gate says as Markdown, for a comment on a pull request."""
    lines = [f"### {_MARKS[view.outcome]} {view.outcome.replace('_', ' ').capitalize()}", ""]
    matrix = "" if view.matrix_id is None else f" Matrix {view.matrix_id}."
    lines += [f"Not slower by more than {100 * view.margin:.3g} %: {whole_text(view)}.{matrix}", ""]
    if view.rows:
        lines += [
            "| device | candidate | baseline | speedup | interval | rounds | gate |",
            "| --- | --- | --- | ---: | --- | ---: | --- |",
            *(_summary_row(row, view.margin) for row in view.rows),
            "",
        ]
    return "\n".join(lines)


def _summary_row(row: GateRowView, margin: float) -> str:
    speedup, _, interval = speedup_text(row.speedup, row.ci_low, row.ci_high).partition(", ")
    is_undecided = row.outcome is GateOutcome.UNDECIDED
    further = further_text(row.further_rounds, has_interval=row.ci_low is not None) if is_undecided else ""
    answer = ", ".join(
        filter(None, [row.outcome.replace("_", " "), _near_slower_text(row, margin), further, row.problem])
    )
    cells = (device_name(row), row.candidate, row.baseline, speedup, interval, str(row.rounds), answer)
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """Return a text that neither ends a cell of a Markdown table nor begins markup."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(text.split()))


_MARKS = {
    GateOutcome.PASSED: "✅",
    GateOutcome.SLOWER: "❌",
    GateOutcome.UNDECIDED: "❔",
    GateOutcome.NOT_MEASURED: "❔",
}


def write_summary(view: GateView, file: Path) -> None:
    """Write the Markdown of a gate; a file that exists gets it at its end, as `GITHUB_STEP_SUMMARY` wants."""
    _append(summary_text(view), file)


@contextmanager
def summary_if_unreachable(file: Path | None) -> Iterator[None]:
    """Write a summary that says so where the farm cannot be reached in between; None: there is no summary.

    Raises:
        FarmUnreachable: the farm cannot be reached.
    """
    try:
        yield
    except FarmUnreachable as error:
        if file is not None:
            _append(f"### ❔ Unreachable\n\nNothing is known: {_escaped(error.message)}.\n", file)
        raise


def _append(text: str, file: Path) -> None:
    if str(file) == "-":
        print_unchanged(text)
        return
    with file.open("a", encoding="utf-8") as out:
        out.write(text)
