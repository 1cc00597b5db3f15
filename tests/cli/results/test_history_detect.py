"""`farm history detect` over files, without a farm."""

import csv
import json
import math
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

from farm.cli.shell.main import main
from farm.core.results.history.changes.points import Point
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch

SKETCH = Sketch(
    shifts=(Shift(day=30, delta=0.08, holds_for=lambda d, n, v: (n, v) == ("n0", "int8")),),
    versions={("file", "", "n0", "int8"): ((30, "new"),)},
)


def cell(value: object) -> object:
    return "" if isinstance(value, float) and math.isnan(value) else value


def write(file: Path, points: Iterable[Point]) -> Path:
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(Point._fields)
        for point in points:
            dated = point._replace(day=date.fromordinal(point.day).isoformat())  # type: ignore[arg-type]
            writer.writerow(map(cell, dated))
    return file


def farm(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(end.value.code or 0)


def test_changes_are_a_json_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert farm("history", "detect", write(tmp_path / "points.csv", SKETCH.points()), "--json") == 0
    (change,) = json.loads(capsys.readouterr().out)
    assert list(change) == ["series", "scope", "day", "delta", "cause", "told"]
    assert change["series"] is None
    assert change["scope"] == {"network": "n0", "variant": "int8"}
    assert change["day"] == date.fromordinal(FIRST_DAY + 30).isoformat()
    assert change["cause"] == "file"
    assert change["delta"] == pytest.approx(0.08, abs=0.02)


def test_changes_are_a_table_of_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert farm("history", "detect", write(tmp_path / "points.csv", SKETCH.points())) == 0
    output = capsys.readouterr()
    assert "network n0, variant int8" in output.out
    assert max(map(len, output.out.splitlines())) <= 80
    assert "1 change in" in output.err


def test_a_file_without_changes_is_an_empty_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert farm("history", "detect", write(tmp_path / "points.csv", Sketch(days=5).points()), "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_what_cannot_be_read_is_an_error_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    for file, problem in (
        (tmp_path / "nope.csv", "no such file"),
        (tmp_path, "a folder"),
        (binary, "not text in UTF-8"),
        (other, "the file has no column series"),
    ):
        assert farm("history", "detect", file) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"error: {file}: {problem}\nhint: ")
