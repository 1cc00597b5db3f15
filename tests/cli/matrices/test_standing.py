"""Matrices that stand, from their file to their coverage."""

from pathlib import Path

import pytest

from tests.cli.matrices.test_matrix import MATRIX, Measured, document, measured, original, run

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


def test_what_stands_under_no_such_name_has_a_hint(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert "nightly.yaml, line 12: schedule: 2 fields" in capsys.readouterr().err
