"""Matrices that stand, from their file to their coverage."""

from pathlib import Path

import pytest

from farm.cli.matrices.standing import standing_report
from farm.wire.documents.matrices.standing import CoverageCounts, StandingView, UncoveredCell
from tests.cli.matrices.test_matrix import MATRIX, Measured, document, measured, original, run
from tests.cli.shell.test_tables import shown
from tests.support.sample_views import NOON

__all__ = ["measured", "original"]
STANDING = """\
schedule: "0 2 * * *"
skip: [{cells: {precision: float32}, devices: {device: phone-1}, reason: BUG-12, until: "2999-01-31"}]
"""


def test_a_matrix_stands_until_it_is_ended(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nightly.yaml"
    file.write_text(MATRIX.replace("exclude: [{precision: int8-core}]\n", "") + STANDING)
    assert run("matrix", "stand", file) == 0
    out = capsys.readouterr().err
    assert "small stands: 1 queued, 2 skipped; matrix 4 measures what was missing; next session " in out
    assert run("matrix", "standing") == 0
    listed = capsys.readouterr().out
    assert "0 2 * * *" in listed
    assert run("matrix", "standing", "small") == 0
    report = capsys.readouterr().out
    assert "BUG-12, until 2999-01-31" in report
    assert "its jobs are queued or run (matrix 4)" in report
    (listed_one,) = document(capsys, "matrix", "standing")
    assert document(capsys, "matrix", "standing", "small", "--end") == listed_one
    assert document(capsys, "matrix", "standing") == []


def test_cells_of_a_device_with_one_reason_are_one_row_of_its_coverage() -> None:
    def cell(label: str, device: str | None, coverage: str, reason: str) -> dict[str, object]:
        return {
            "device_id": device,
            "device_label": None,
            "label": label,
            "coverage": coverage,
            "reason": reason,
        }

    cells = [
        cell(f"int8 {backend}", device, coverage, reason)
        for backend in ("cpu", "nnapi")
        for device, coverage, reason in (
            ("phone-1", "queued", "its jobs are queued or run"),
            (None, "rejected", "no such file"),
        )
    ]
    view = StandingView(
        standing_id=1,
        name="nightly",
        harness="hash_bench",
        schedule=None,
        next_due_at=None,
        submitted_by="ann",
        created_at=NOON,
        changed_at=NOON,
        problem=None,
        cells=CoverageCounts(queued=2, rejected=2),
        devices=(),
        uncovered=[UncoveredCell.model_validate(one) for one in cells],
        more_uncovered=0,
        last_matrix_id=None,
    )
    assert [" ".join(line.split()) for line in shown(standing_report(view), 100)[-2:]] == [
        "phone-1 int8 cpu, int8 nnapi queued its jobs are queued or run",
        "all int8 cpu, int8 nnapi rejected no such file",
    ]


def test_what_stands_under_no_such_name_has_a_hint(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("matrix", "standing") == 0
    assert "matrix stand FILE lets one stand." in capsys.readouterr().err
    assert run("matrix", "standing", "nightly") == 2
    assert "`farm matrix stand FILE` lets one stand" in capsys.readouterr().err
    file = tmp_path / "nightly.yaml"
    file.write_text(MATRIX)
    assert run("matrix", "stand", file) == 0
    capsys.readouterr()
    assert run("matrix", "standing", "smal", "--end") == 2
    assert "did you mean `small`?" in capsys.readouterr().err


def test_a_wrong_schedule_is_told_with_its_line(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nightly.yaml"
    file.write_text(MATRIX + "schedule: every night\n")
    assert run("matrix", "stand", file) == 2
    assert "nightly.yaml, line 12: schedule: five fields are needed, not 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("skip", "place", "words"),
    [
        ('{reason: BUG, until: "2020-01-31"}', "skip[0].until", "2020-01-31 has passed"),
        ('{reason: BUG, until: "2999-01-31", devices: {device: nope}}', "skip[0]", "it covers no cell"),
        ('{reason: BUG, until: "2999-01-31", cells: {precision: int4}}', "skip[0]", "it covers no cell"),
        ('{reason: BUG, until: "2999-01-31", cells: {iterations: 9}}', "skip[0]", "it covers no cell"),
    ],
)
def test_a_skip_that_skips_nothing_is_refused_with_its_line(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str], skip: str, place: str, words: str
) -> None:
    file = tmp_path / "nightly.yaml"
    file.write_text(MATRIX + f"skip: [{skip}]\n")
    assert run("matrix", "stand", file) == 2
    error = capsys.readouterr().err
    assert f"nightly.yaml, line 12: {place}: {words}" in error
    assert run("matrix", "standing") == 0
    assert "small" not in capsys.readouterr().out


def test_a_file_that_stands_already_is_replaced_and_says_so(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nightly.yaml"
    for words in ("small stands: ", "small stands again, in place of what stood under this name: "):
        file.write_text(MATRIX)
        assert run("matrix", "stand", file) == 0
        assert words in capsys.readouterr().err


def test_the_end_of_no_matrix_and_a_submission_of_a_standing_one_say_what_to_type(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("matrix", "standing", "--end") == 2
    assert "`farm matrix standing NAME --end`" in capsys.readouterr().err
    file = tmp_path / "nightly.yaml"
    file.write_text(MATRIX + STANDING)
    assert run("matrix", "plan", file) == 0
    planned = capsys.readouterr()
    assert "`farm matrix stand` queues nothing at once" in planned.out
    assert "skipped until 2999-01-31: BUG-12" in planned.out
    assert f"farm matrix stand {file}" in planned.err
    assert run("matrix", "submit", file) == 2
    error = capsys.readouterr().err
    assert "unknown key `schedule`" in error
    assert "`farm matrix stand FILE`" in error
