"""The tables at the end of a run."""

import io
from typing import Any

import pytest
from rich.console import Console

from farm.cli.matrices.report import metric_table
from farm.cli.run.result import (
    legend,
    print_result,
    result_document,
    too_few_rounds_text,
    value_table,
)
from farm.core.results.statistics.sessions import SessionSpread
from farm.core.runs.measurement import CellSummary
from farm.wire.documents.results.results import MetricView, ResultView
from tests.support.sample_views import cell_setup, matrix_view, speedup_view


def level_view(**changes: Any) -> CellSummary:
    values = {
        "rounds": 5,
        "median": 12.3e6,
        "low": 12.1e6,
        "high": 12.6e6,
        "ci_low": 12.2e6,
        "ci_high": 12.5e6,
    }
    return CellSummary(**{**values, **changes})


def result_view(**changes: Any) -> ResultView:
    values: dict[str, Any] = {
        **dict(cell_setup()),
        "cell_id": 1,
        "index": 0,
        "device_id": "phone-1",
        "device_label": None,
        "device_model": "Pixel 8",
        "soc": "Tensor G3",
        "virtual": False,
        "label": "cpu",
        "backend": "cpu",
        "clock_covers": "one inference",
        "kind": "samples",
        "time": level_view(),
        "p90_ns": 12.9e6,
        "scatter": 0.01,
        "metrics": (),
        "rounds_by_quality": {"valid": 5},
        "counted": "valid",
        "accelerator": "cpu",
        "proof": "cpu",
    }
    return ResultView.model_validate({**values, **changes})


def text(table: object) -> list[str]:
    console = Console(width=80, file=io.StringIO())
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_one_row_for_each_phone_in_one_unit_at_80_columns() -> None:
    lines = text(
        value_table(
            [result_view(), result_view(device_id="phone-2", rounds_by_quality={"noisy": 1, "valid": 4})]
        )
    )
    assert lines == [
        "device      time  95 % interval    min to max      p90  rounds",
        "phone-1  12.3 ms   12.2 to 12.5  12.1 to 12.6  12.9 ms  5 valid",
        "phone-2  12.3 ms   12.2 to 12.5  12.1 to 12.6  12.9 ms  4 valid, 1 noisy",
    ]


def test_cells_are_named_where_there_are_several_and_units_where_they_differ() -> None:
    wide = level_view(median=1.0e6, low=0.9e6, high=1.2e6, ci_low=None, ci_high=None)
    lines = text(value_table([result_view(time=wide), result_view(label="gpu", time=None, p90_ns=None)]))
    assert lines[0].split() == ["device", "cell", "time", "min", "to", "max", "p90", "rounds"]
    assert "900 µs to 1.20 ms" in lines[1]
    assert lines[2].split()[:5] == ["phone-1", "gpu", "-", "-", "-"]


def test_one_round_of_a_tool_without_samples_is_one_number() -> None:
    once = level_view(rounds=1, low=12.3e6, high=12.3e6, ci_low=None, ci_high=None)
    result = result_view(time=once, p90_ns=None, rounds_by_quality={"valid": 1})
    assert text(value_table([result])) == ["device      time  rounds", "phone-1  12.3 ms  1 valid"]
    assert next(iter(legend([result]))) == "time = that of one process."


def test_the_legend_speaks_of_intervals_where_there_are_some() -> None:
    few = result_view(time=level_view(rounds=4, ci_low=None, ci_high=None))
    assert any(
        line.startswith("95 % interval: over rounds, of this session") for line in legend([result_view()])
    )
    assert next(iter(legend([few]))) == "time = median over rounds, each a process of its own."


def test_an_interval_is_of_this_session_and_earlier_ones_say_how_far_they_lie_apart() -> None:
    spread = SessionSpread(matrices=3, low_ns=11.9e6, high_ns=13.1e6)
    told = list(legend([result_view(sessions=spread)]))
    assert "3 earlier sessions of phone-1: medians of 11.9 ms to 13.1 ms." in told
    assert "There is no earlier session to tell how far sessions lie apart." in list(legend([result_view()]))


def test_the_shortest_iteration_stands_beside_the_median() -> None:
    lines = text(value_table([result_view(min_ns=11_800_000)]))
    assert lines[0].split()[-3:] == ["least", "p90", "rounds"]
    assert "11.8 ms" in lines[1]
    assert max(map(len, lines)) <= 80


def test_the_legend_says_what_the_clock_covers_and_which_phones_these_are() -> None:
    lines = list(legend([result_view(), result_view(device_id="phone-2", counted="unproven")]))
    assert "The clock covers one inference." in lines
    assert "phone-1, phone-2: Pixel 8, Tensor G3" in lines
    assert any(line.startswith("Without a valid round") for line in lines)


def test_further_figures_have_a_table_of_their_own() -> None:
    metric = MetricView(
        name="memory", unit="MB", better="lower", level=level_view(median=12.25, low=12.0, high=13.5)
    )
    assert text(metric_table([result_view(metrics=(metric,))])) == [
        "metric    median  min to max  better",
        "memory  12.25 MB  12 to 13.5  lower",
    ]


def test_bytes_are_printed_as_sizes() -> None:
    metric = MetricView(
        name="memory_peak_rss",
        unit="bytes",
        better="lower",
        level=level_view(median=12.25e6, low=12e6, high=13.5e6),
    )
    assert text(metric_table([result_view(metrics=(metric,))])) == [
        "metric            median          min to max  better",
        "memory_peak_rss  12.2 MB  12.0 MB to 13.5 MB  lower",
    ]


def test_further_figures_of_one_round_have_no_range() -> None:
    metric = MetricView(
        name="memory", unit="MB", better="lower", level=level_view(median=12.0, low=12.0, high=12.0)
    )
    lines = text(
        metric_table([result_view(metrics=(metric,)), result_view(device_id="p2", metrics=(metric,))])
    )
    assert lines[0] == "device   metric  median  better"


def test_the_metrics_of_a_sustained_run_fit_into_80_columns() -> None:
    metrics = tuple(
        MetricView(
            name=name,
            unit=unit,
            better="lower",
            level=level_view(median=32.84291, low=31.08254, high=339.1234),
        )
        for name, unit in (("sustained_for", "s"), ("sustained_peak", "ms"), ("first_ceiling", "s"))
    )
    results = [
        result_view(device_id=f"virtual-desk-{number}", label=label, metrics=metrics)
        for number in range(2)
        for label in ("float32", "int8-core")
    ]
    lines = text(metric_table(results))
    assert len(lines) == 13
    assert max(map(len, lines)) <= 80


def test_with_a_baseline_the_table_is_one_of_speedups(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(matrix_view(rounds=5), [result_view()], [speedup_view()])
    printed = capsys.readouterr()
    assert "speedup = baseline time / candidate time" in printed.out
    assert "min to max" not in printed.out
    assert too_few_rounds_text(5) not in printed.err


def test_too_few_rounds_are_said_and_so_is_nothing_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(matrix_view(rounds=1), [result_view()], [])
    assert too_few_rounds_text(1) in capsys.readouterr().err
    print_result(matrix_view(rounds=1), [result_view(time=None)], [])
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "Nothing was measured.\n")


def test_the_document_has_matrix_results_and_speedups() -> None:
    document = result_document(matrix_view(), [result_view()], [speedup_view()])
    assert list(document.model_dump()) == ["matrix", "results", "speedups", "gate"]
