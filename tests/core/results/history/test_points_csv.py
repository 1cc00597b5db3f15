"""Points as CSV."""

import math

import pytest

from farm.core.errors import InvalidInput
from farm.core.results.history.points_csv import point_table

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


@pytest.mark.parametrize("day", ["2026-01-31T23:30:00+05:00", "2026-01-31 23:30", "20260131"])
def test_days_may_be_times(day: str) -> None:
    assert point_table([HEADER, row(day=day)]).points[0].day == point_table([HEADER, row()]).points[0].day


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "None", "null", "NA", "inf"])
def test_a_value_that_does_not_exist_is_nan(cell: str) -> None:
    (point,) = point_table([HEADER, row(log_speedup=cell)]).points
    assert math.isnan(point.log_speedup)


def test_rows_without_any_value_and_empty_lines_are_left_out() -> None:
    assert point_table([HEADER, row(log_time="", log_speedup=""), "", ",,,,,,,,,,,,,,,,"]).points == []


def test_a_byte_order_mark_and_further_columns_do_not_matter() -> None:
    lines = ["\ufeff" + HEADER + ",mood", row() + ",good"]
    assert len(point_table(lines).points) == 1


def test_optional_columns_may_be_absent() -> None:
    lines = ["series,device,network,variant,harness,day,log_time,log_speedup", "s,d,n,int8,h,3,2.5,0.1"]
    assert point_table(lines).points[0].file == ""


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no column series"),
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


def test_two_values_of_a_series_on_a_day_need_times() -> None:
    first, second = (row(log_time=value).replace("02:00", "") for value in ("2.5", "2.6"))
    message = "line 3: series s has other values on day 2026-01-31 without a time before"
    with pytest.raises(InvalidInput, match=message):
        point_table([HEADER, first, second])
    assert len(point_table([HEADER, first, first]).points) == 2


def test_names_of_sessions_do_not_stand_for_their_times() -> None:
    rows = [
        f"{row(log_time=value)},{session}".replace("02:00", "") for session, value in ((1, "2.5"), (2, "2.6"))
    ]
    with pytest.raises(InvalidInput, match="on day 2026-01-31 without a time before") as error:
        point_table([f"{HEADER},session", *rows])
    assert "session orders nothing" in (error.value.hint or "")


@pytest.mark.parametrize("time", ["2:00", "7", "7.0"])
def test_two_values_of_a_series_at_one_time_are_refused_in_one_session_only(time: str) -> None:
    """Times that are numbers are equal as such."""
    first, second = (
        row().replace("02:00", "7" if time == "7.0" else time),
        row(log_time="2.6").replace("02:00", time),
    )
    with pytest.raises(
        InvalidInput, match=f"line 3: series s has other values on day 2026-01-31 at {time} before"
    ):
        point_table([HEADER, first, second])
    assert len(point_table([HEADER, first, first]).points) == 2
    assert len(point_table([f"{HEADER},session", f"{first},1", f"{second},2"]).points) == 2


def test_points_of_a_session_have_its_name() -> None:
    (point,) = point_table([f"{HEADER},session", f"{row()},17"]).points
    assert point.session == "17"
