"""Trends in a terminal of 80 columns, and points as the file that `farm history detect` reads."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from farm.cli.results.history_show import sparkline, trends_text
from farm.core.base.ids import CellId
from farm.core.devices.controls import ControlLevel
from farm.core.errors import InvalidInput
from farm.core.results.history.points_from_csv import point_table
from farm.core.results.history.recorded_change import ChangeCause, ChangeState
from farm.presentation.text import past_moment
from farm.presentation.trends import CSV_COLUMNS, csv_lines, new_versions
from farm.wire.documents.results.history import HistoryPoint, SeriesChange, SeriesHistory, VersionPart

START = datetime(2026, 5, 2, 12, tzinfo=UTC)


def point(number: int, *, speedup: float | None = 2.0, **changes: Any) -> HistoryPoint:
    time_ns = 1e7
    values = {
        "matrix_id": number,
        "cell_id": number,
        "began_at": START + timedelta(days=number),
        "ended_at": START + timedelta(days=number, hours=1),
        "rounds": 10,
        "left_out": 0,
        "time_ns": time_ns,
        "baseline_ns": None if speedup is None else time_ns * speedup,
        "speedup": speedup,
        "ci_low": None if speedup is None else speedup * 0.98,
        "ci_high": None if speedup is None else speedup * 1.02,
        "log_time": math.log(time_ns),
        "se_time": 0.01,
        "log_speedup": None if speedup is None else math.log(speedup),
        "se_speedup": None if speedup is None else 0.01,
        "variant_digest": "f" * 64,
        "program_digest": "a" * 64,
        "baseline_variant_digest": None,
        "baseline_program_digest": None,
        "os": "google/build:14 1234abcd",
        "android": "14",
        "control_level": ControlLevel.FREE,
        "changed": (),
        **changes,
    }
    return HistoryPoint.model_validate(values)


def history(*points: HistoryPoint, baseline: str | None = "float32 cpu") -> SeriesHistory:
    setup = {
        "model": "mobilenet_v2",
        "variant": "mobilenet_v2/int8",
        "precision": "int8",
        "format": "torchscript",
        "memory_format": "contiguous",
        "target": "cpu",
        "backend": "cpu",
        "changed_settings": {},
        "harness": "speed_benchmark_torch",
    }
    values = {
        **setup,
        "series_id": 7,
        "baseline_series_id": None if baseline is None else 3,
        "device_id": "serial-1",
        "device_label": "phone-1",
        "device_model": "Pixel 8",
        "soc": "Tensor G3",
        "virtual": False,
        "baseline_setup": setup | {"precision": "float32"} if baseline else None,
        "label": "int8 cpu" if baseline else "float32 cpu",
        "baseline": baseline,
        "slot": 5,
        "points": points,
    }
    return SeriesHistory.model_validate(values)


def test_a_trend_fits_eighty_columns_and_shows_where_a_version_changed() -> None:
    days = [point(day, speedup=1.5 if day < 200 else 1.9) for day in range(400)]
    days[200] = point(200, speedup=1.9, program_digest="b" * 64, changed=(VersionPart.PROGRAM,))
    text = trends_text([history(*days), history(point(1, speedup=None), baseline=None)], width=80).plain
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "| 2026-11-18  program aaaaaaaa → bbbbbbbb" in text
    assert "int8 vs float32: 400 sessions, 2026-05-02 to 2027-06-05" in text
    assert "1.50x to 1.90x, now 1.86 to 1.94, 10.0 ms" in text
    assert "10.0 ms" in text.splitlines()[3], "the baseline comes first"


@pytest.mark.parametrize(
    ("values", "marks", "drawn"),
    [
        ([1.0], [""], "▅"),
        ([1.0, 1.001], ["", ""], "▅▅"),
        ([1.0, 2.0], ["", "|"], "▁|█"),
        ([1.0] * 30 + [4.0] * 30, [""] * 60, "▁▁▁▁▁█████"),
        ([1.0] * 3, ["|", "|", "!"], "▅|▅!▅"),
    ],
)
def test_bars_share_a_scale_and_are_parted_by_marks(
    values: list[float], marks: list[str], drawn: str
) -> None:
    assert sparkline(values, marks, width=10) == drawn


def test_a_change_that_was_found_is_marked_and_told_below() -> None:
    change = SeriesChange(
        change_id=7,
        cell_id=CellId(20),
        cause=ChangeCause.PROGRAM,
        state=ChangeState.NEW,
        delta=0.05,
        se_delta=0.004,
        before_at=START + timedelta(days=19),
        since_at=START + timedelta(days=20),
    )
    days = [point(day, speedup=2.0 if day < 20 else 1.9) for day in range(40)]
    days[20] = point(20, speedup=1.9, program_digest="b" * 64, changed=(VersionPart.PROGRAM,))
    view = history(*days).model_copy(update={"changes": (change,)})
    text = trends_text([view], width=80).plain
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "█!▁" in text
    assert "  ! 2026-05-21 to 05-22  change 7: +5.1 % (+4.3 to +6.0), program, new" in text
    assert "| 2026-05-22  program aaaaaaaa → bbbbbbbb" in text


def test_the_file_of_points_is_one_that_detection_reads() -> None:
    views = [history(point(1), point(2, se_speedup=None)), history(point(1, speedup=None), baseline=None)]
    lines = list(csv_lines(views))
    assert lines[0] == ",".join(CSV_COLUMNS)
    table = point_table(lines)
    base, *others = sorted(table.points, key=lambda each: not each.is_baseline)
    assert [each.series for each in (base, *others)] == ["7", "7:3", "7:3"]
    assert base.is_baseline
    assert math.isnan(base.log_speedup)
    assert {each.variant for each in others} == {"int8 cpu"}
    assert {round(each.log_speedup, 6) for each in others} == {round(math.log(2), 6)}
    assert {each.os for each in others} == {"google/build:14 1234abcd"}


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "2999-01-01", "1950-01-01", ""])
def test_a_time_that_is_none_or_has_not_come_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        past_moment(text, option="--at")
    assert refusal.value.hint
    assert "--at" in refusal.value.message


def test_dates_times_and_durations_are_moments() -> None:
    now = datetime.now(UTC)
    year = past_moment("1y", option="--since")
    assert year is not None
    assert timedelta(days=364) < now - year < timedelta(days=366)
    assert past_moment("2020-03-01", option="--at") == datetime(2020, 3, 1).astimezone()
    assert past_moment("2020-03-01T12:30:00+00:00", option="--at") == datetime(2020, 3, 1, 12, 30, tzinfo=UTC)
    assert past_moment(None, option="--at") is None
    # A duration that reaches beyond the first day that there is.
    assert past_moment("999999999y", option="--since") is not None


def test_a_baseline_with_the_same_new_version_is_not_named_again() -> None:
    parts = (VersionPart.PROGRAM, VersionPart.BASELINE_PROGRAM)
    same = point(1, changed=parts, program_digest="c" * 64, baseline_program_digest="c" * 64)
    other = point(1, changed=parts, program_digest="c" * 64, baseline_program_digest="d" * 64)
    assert new_versions(same) == "program cccccccc"
    assert new_versions(other) == "program cccccccc, program of the baseline dddddddd"
