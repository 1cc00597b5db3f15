"""The trace of a run as people see it: strips of at most 80 columns."""

from dataclasses import replace

from farm.cli.jobs.attempt import attempt_report
from farm.cli.jobs.trace_strip import WIDTH, trace_fields
from farm.core.runs.trace import RunTrace
from tests.core.runs.test_trace_findings import falls_and_recovers, trace
from tests.support.sample_views import attempt_view


def lines(run: RunTrace) -> dict[str, str]:
    return {(text or "")[:15].strip(): (text or "")[15:] for _, text in trace_fields(run)}


def test_each_thing_that_was_sampled_is_a_strip_with_its_range() -> None:
    run = trace(
        clocks=falls_and_recovers,
        temperatures_c=lambda second: {"skin": 30.0 + second / 10, "cpu0": 25.0},
        rss_bytes=lambda _: 80_000_000,
        battery_a=lambda second: -0.35 if second > 30 else 0.4,
    )
    shown = lines(run)
    full, low = "█" * 10, "▅" * 16
    assert shown["policy4 limit"] == f"{full}{low}{'█' * 5} 1.42 to 2.37 of 2.37 GHz"
    assert shown["policy0 limit"] == f"{'█' * WIDTH} 1.70 of 1.70 GHz"
    assert shown["hottest"].endswith(" 30.1 °C to 35.9 °C")
    assert shown["memory"] == f"{'█' * WIDTH} 80.0 MB"
    assert shown["battery"].endswith(" -0.35 A to +0.40 A")
    assert "swapped" not in shown


def test_a_part_without_samples_is_no_part_at_zero() -> None:
    run = replace(trace(), samples=trace().samples[:30])
    strip = lines(run)["policy4 limit"]
    assert strip.startswith("█" * 15)
    assert "·" * 15 in strip


def test_no_line_is_wider_than_a_terminal() -> None:
    run = trace(clocks=falls_and_recovers, temperatures_c=lambda second: {"skin": 30.0 + second / 10})
    report = attempt_report(attempt_view(trace=run, notices=("policy4 was limited",))).plain
    own = [line for line in report.splitlines() if "█" in line or line.startswith("during")]
    assert own
    assert max(map(len, own)) <= 80
    assert "during   60.0 s, 59 samples; a column is 1.9 s" in report
    assert "notice   policy4 was limited" in report


def test_a_device_that_shows_nothing_says_so() -> None:
    run = replace(trace(), samples=(), policies=())
    assert list(trace_fields(run)) == [("during", "the device showed nothing of itself")]
