"""Points as CSV."""

import math

import pytest

from farm.core.errors import InvalidInput
from farm.core.results.history.points_from_csv import PointTable, point_table

HEADER = (
    "series,device,device_model,unit,network,variant,harness,day,time,log_time,se_time,log_speedup,se_speedup,n,"
    "file,program,os"
)


def row(day: str = "2026-01-31", log_time: str = "2.5", log_speedup: str = "0.1", series: str = "s") -> str:
    return f"{series},d,m,u,n,int8,h,{day},02:00,{log_time},0.01,{log_speedup},0.02,10,f,p,o"


def test_a_row_is_a_point_and_days_are_written_as_they_were() -> None:
    table = point_table([HEADER, row()])
    (point,) = table.points
    assert (point.series, point.device, point.network, point.variant) == ("s", "d", "n", "int8")
    assert (point.log_time, point.log_speedup, point.se_speedup) == (2.5, 0.1, 0.02)
    assert (point.file, point.program, point.os) == ("f", "p", "o")
    assert table.day_labels == {point.day: "2026-01-31"}


def test_numbered_days_stay_numbers() -> None:
    assert point_table([HEADER, row(day="17")]).day_labels == {17: 17}


@pytest.mark.parametrize(("cell", "day"), [("17.0", 17), ("-3", -3), ("0", 0), ("1e2", 100)])
def test_a_number_of_a_day_is_printed_as_a_number(cell: str, day: int) -> None:
    assert point_table([HEADER, row(day=cell)]).day_labels == {day: day}


def test_times_of_a_day_that_are_numbers_have_their_order() -> None:
    rows = [row().replace("02:00", time) for time in ("10", "9", "9.5")]
    points = point_table([HEADER, *rows]).points
    assert [points.index(point) for point in sorted(points, key=lambda point: point.time)] == [1, 2, 0]


@pytest.mark.parametrize(
    "day", ["2026-01-31T23:30:00+05:00", "2026-01-31 23:30", "20260131", "2026/01/31", "2026-1-31"]
)
def test_days_may_be_times(day: str) -> None:
    assert point_table([HEADER, row(day=day)]).points[0].day == point_table([HEADER, row()]).points[0].day


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "None", "null", "NA"])
def test_a_value_that_does_not_exist_is_nan(cell: str) -> None:
    (point,) = point_table([HEADER, row(log_speedup=cell)]).points
    assert math.isnan(point.log_speedup)


def test_rows_without_any_value_and_empty_lines_are_left_out() -> None:
    assert point_table([HEADER, row(log_time="", log_speedup=""), "", ",,,,,,,,,,,,,,,,"]).points == []


def test_a_byte_order_mark_and_further_columns_do_not_matter() -> None:
    lines = ["\ufeff" + HEADER.replace("day", "Day") + ",mood", row() + ",good"]
    assert len(point_table(lines).points) == 1


def test_optional_columns_may_be_absent() -> None:
    lines = ["series,device,network,variant,harness,day,log_time,log_speedup", "s,d,n,int8,h,3,2.5,0.1"]
    assert point_table(lines).points[0].file == ""


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no first line with the names of columns"),
        ([HEADER.replace("log_time,", "")], "no column log_time"),
        ([HEADER, row(log_time="fast")], "line 2: log_time is 'fast', not a number"),
        ([HEADER, row(day="someday")], "line 2: day is 'someday'"),
        ([HEADER, row(day="1.5")], "line 2: day is '1.5'"),
        ([HEADER, row() + ",more"], "line 2: 18 cells, but 17 columns"),
        ([HEADER, row(series="")], "line 2: series is empty"),
        ([HEADER, row(), row(day="17")], "some days are numbers and some are dates"),
        ([HEADER, row().removesuffix(",o")], "line 2: 16 cells, but 17 columns"),
        ([HEADER.replace(",", ";"), row()], "no column series"),
        ([HEADER + ",day", row() + ",3"], "day in two columns"),
        ([HEADER, row(log_time="1e308")], "line 2: log_time is 1e308, which is no logarithm"),
        ([HEADER, row(log_speedup="-8000")], "line 2: log_speedup is -8000"),
        ([HEADER, row(log_time="1e999")], "line 2: log_time is 1e999, which is no logarithm"),
        ([HEADER, row(log_speedup="-inf")], "line 2: log_speedup is -inf, which is no logarithm"),
        ([HEADER, row().replace("0.02", "1e999")], "line 2: se_speedup is 1e999"),
        ([HEADER, row().replace("0.02", "-0.02")], "line 2: se_speedup is -0.02"),
        ([HEADER, row(), row().replace("s,d", "s,d2")], "line 3: series s measures something else"),
        ([HEADER, row(series='"s')], "line 2: "),
        ([HEADER, row(series="x" * 200_000)], "line 2: not CSV: field larger than field limit"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(lines: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        point_table(lines)
    assert error.value.hint


@pytest.mark.parametrize("day", ["2999-01-01", "1026-01-31", "2999-01-01T10:00"])
def test_a_date_of_another_age_is_refused(day: str) -> None:
    with pytest.raises(InvalidInput, match=r"line 3: day is '.*', of the year \d+"):
        point_table([HEADER, row(), row(day=day)])


def times_of(table: PointTable) -> list[float]:
    """Return the logarithms of time in the order of sessions."""
    return [point.log_time for point in sorted(table.points, key=lambda point: point.time)]


def test_values_of_a_series_and_day_without_times_are_in_the_order_of_the_rows() -> None:
    rows = [row(log_time=value).replace("02:00", "") for value in ("2.6", "2.5", "2.7")]
    table = point_table([HEADER, *rows, rows[1]])
    assert times_of(table) == [2.6, 2.5, 2.5, 2.7]
    assert len(set(table.points)) == 3, "a row that is there twice counts once"
    (assumption,) = table.assumptions
    assert "without different times: 2" in assumption
    assert point_table([HEADER, rows[0], rows[0]]).assumptions == []


def test_names_of_sessions_do_not_stand_for_their_times() -> None:
    rows = [
        f"{row(log_time=value)},{session}".replace("02:00", "") for session, value in ((2, "2.5"), (1, "2.6"))
    ]
    table = point_table([f"{HEADER},session", *rows])
    assert times_of(table) == [2.5, 2.6]
    assert table.assumptions


@pytest.mark.parametrize("time", ["2:00", "7", "7.0"])
def test_two_values_of_a_series_at_one_time_are_in_the_order_of_the_rows(time: str) -> None:
    """Times that are numbers are equal as such."""
    first, second = (
        row(log_time="2.6").replace("02:00", "7" if time == "7.0" else time),
        row().replace("02:00", time),
    )
    table = point_table([HEADER, first, second])
    assert times_of(table) == [2.6, 2.5]
    assert table.assumptions
    assert not point_table([f"{HEADER},session", f"{first},1", f"{second},2"]).assumptions


def test_hours_of_one_digit_have_their_order() -> None:
    rows = [row(log_time=value).replace("02:00", time) for value, time in (("2.6", "10:30"), ("2.5", "9:30"))]
    assert times_of(point_table([HEADER, *rows])) == [2.5, 2.6]


def test_the_time_of_a_day_that_is_written_with_it_orders_sessions() -> None:
    days = (("2.6", "2026-01-31T18:00"), ("2.5", "2026-01-31T09:00"))
    rows = [row(day, log_time=value).replace("02:00", "") for value, day in days]
    assert times_of(point_table([HEADER, *rows])) == [2.5, 2.6]


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_measured_times_in_the_column_time_do_not_order_sessions(unit: float) -> None:
    """The quicker session of a day is not its first one."""
    rows = [
        row(log_time=str(value), day=day).replace("02:00", str(unit * math.exp(value)))
        for day, values in (("1", (2.6, 2.5)), ("2", (9.6, 9.7)))
        for value in values
    ]
    table = point_table([HEADER, *rows])
    assert times_of(table) == [2.6, 9.6, 2.5, 9.7]
    assert "measured times" in table.assumptions[0]


@pytest.mark.parametrize("cell", ["", "nan", "None", "NA", "<NA>", "-"])
def test_a_version_that_does_not_exist_is_unknown(cell: str) -> None:
    (point,) = point_table([HEADER, row().replace("f,p,o", f"{cell},p,{cell}")]).points
    assert (point.file, point.program, point.os) == ("", "p", "")


def test_points_of_a_session_have_its_name() -> None:
    (point,) = point_table([f"{HEADER},session", f"{row()},17"]).points
    assert point.session == "17"
