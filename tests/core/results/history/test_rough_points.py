"""Files of points as others write them: an answer or a clear error, whatever the columns hold."""

import csv
import io
from collections.abc import Callable
from datetime import date
from random import Random

import pytest

from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.points import Cause
from farm.core.results.history.points_from_csv import point_table
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch
from tests.support.session.tiers import quick_first

DAY = 22
SHIFT = Shift(day=DAY, delta=0.1, holds_for=lambda device, network, variant: variant == "int8")
VERSIONS = {("file", "", "", "int8"): ((DAY, "file-2"),)}

Row = dict[str, object]


def rows_of(sketch: Sketch) -> list[Row]:
    """Return the points of a sketch as rows of a file."""
    return [{**point._asdict(), "n": 10, "unit": "u1", "device_model": "Pixel"} for point in sketch.points()]


def text_of(rows: list[Row], columns: list[str] | None = None) -> io.StringIO:
    """Return rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns or list(rows[0]), extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    text.seek(0)
    return text


def changed(rows: list[Row]) -> list[Row]:
    return rows


def with_all(**cells: object) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [{**row, **cells} for row in rows]


def shuffled_and_doubled(rows: list[Row]) -> list[Row]:
    mixed = rows + rows[::3]
    Random(1).shuffle(mixed)
    return mixed


def without_some_days(rows: list[Row]) -> list[Row]:
    return [row for row in rows if int(str(row["day"])) % 5]


def without_some_values(rows: list[Row]) -> list[Row]:
    return [{**row, "log_speedup": "NaN"} if at % 11 == 0 else row for at, row in enumerate(rows)]


def thrice_a_day(rows: list[Row]) -> list[Row]:
    return [
        {**row, "day": FIRST_DAY + (int(str(row["day"])) - FIRST_DAY) // 3, "time": int(str(row["day"])) % 3}
        for row in rows
    ]


def with_dates(rows: list[Row]) -> list[Row]:
    return [{**row, "day": date.fromordinal(int(str(row["day"]))).isoformat()} for row in rows]


def with_numbers(rows: list[Row]) -> list[Row]:
    return [{**row, "day": f"{int(str(row['day'])) - FIRST_DAY}.0"} for row in rows]


@pytest.mark.parametrize(
    "write",
    quick_first(
        [
            changed,
            with_all(se_time="", se_speedup=""),
            without_some_values,
            with_dates,
            with_all(se_time=0, se_speedup=0),
            with_all(se_time=1e-9, se_speedup=1e-9),
            with_all(se_time=0.05, se_speedup=0.05),
            with_all(n=1),
            shuffled_and_doubled,
            without_some_days,
            thrice_a_day,
            with_numbers,
        ],
        quick=4,
    ),
)
def test_a_new_file_is_found_however_the_points_are_written(
    write: Callable[[list[Row]], list[Row]],
) -> None:
    rows = rows_of(Sketch(days=36, shifts=(SHIFT,), versions=VERSIONS))
    (change,) = detect(point_table(text_of(write(_as_numbers(rows)))).points)
    assert (change.cause, dict(change.scope)) == (Cause.FILE, {"network": "n0", "variant": "int8"})


def _as_numbers(rows: list[Row]) -> list[Row]:
    """Return the points of one network, whose days all forms can hold."""
    return [row for row in rows if row["network"] == "n0"]


def test_columns_may_have_any_order() -> None:
    rows = rows_of(Sketch(days=36, networks=1, shifts=(SHIFT,), versions=VERSIONS))
    assert detect(point_table(text_of(rows, sorted(rows[0], reverse=True))).points)


@pytest.mark.parametrize("variants", [("base",), ("int8",), ("base", "int8")])
def test_a_network_may_have_one_variant(variants: tuple[str, ...]) -> None:
    for file in ("", "file-1"):
        rows = rows_of(Sketch(days=30, networks=1, variants=variants))
        assert detect(point_table(text_of(with_all(file=file)(rows))).points) == []


def test_errors_beyond_all_noise_are_not_believed_and_stop_nothing() -> None:
    rows = rows_of(Sketch(days=30, networks=1, shifts=(SHIFT,)))
    (change,) = detect(point_table(text_of(with_all(se_time=1e300, se_speedup=1e300)(rows))).points)
    assert (change.cause, dict(change.scope)) == (Cause.DRIFT, {"network": "n0", "variant": "int8"})


def test_a_new_program_is_found_where_the_file_has_no_rows_of_baselines() -> None:
    shift = Shift(day=DAY, delta=0.1, holds_for=lambda device, network, variant: variant != "base")
    versions = {("program", "", "", ""): ((DAY, "program-2"),)}
    rows = rows_of(Sketch(days=36, networks=1, shifts=(shift,), versions=versions))
    compared = [row for row in rows if row["variant"] != "base"]
    (change,) = detect(point_table(text_of(compared)).points)
    assert (change.cause, dict(change.scope)) == (Cause.PROGRAM, {"program": "program-2"})


def test_levels_that_never_move_have_no_change() -> None:
    rows = rows_of(Sketch(days=30, networks=1, noise=0.0, wander=0.0))
    assert detect(point_table(text_of(rows)).points) == []


def test_the_largest_logarithms_are_read_without_a_change_in_them() -> None:
    rows = with_all(log_time=700, log_speedup=-700)(rows_of(Sketch(days=30, networks=1)))
    assert detect(point_table(text_of(rows)).points) == []
