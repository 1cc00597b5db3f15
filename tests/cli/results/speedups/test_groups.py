"""Speedups over groups of devices, in 80 columns."""

from typing import Any

from rich.console import Console

from farm.cli.results.speedups.groups import group_tables
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView
from tests.support.sample_views import NOON


def view(**changed: Any) -> GroupSpeedupView:
    return GroupSpeedupView(
        **{
            "by": GroupBy.DEVICE_MODEL,
            "group": "virtual phone (x86_64)",
            "virtual": True,
            "model": "mobilenet_v2",
            "harness": "speed_benchmark_torch",
            "baseline": "float32 torchscript",
            "candidate": "int8-core torchscript",
            "devices": 3,
            "of_devices": 4,
            "speedup": 1.9,
            "ci_low": 1.8,
            "ci_high": 2.0,
            "low": 1.85,
            "high": 1.95,
            "baseline_ns": 80e6,
            "candidate_ns": 42e6,
            "measured_until": NOON,
            **changed,
        }
    )


def lines(*views: GroupSpeedupView) -> list[str]:
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(group_tables(views))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_what_all_rows_of_a_table_share_stands_above_it() -> None:
    printed = lines(view(), view(candidate="int8-full torchscript", devices=4, ci_low=None))
    assert printed[:2] == [
        "virtual phone (x86_64) (virtual)",
        "mobilenet_v2, speed_benchmark_torch; baseline float32 torchscript",
    ]
    assert printed[2].split() == ["candidate", "speedup", "interval", "all", "devices", "time", "devices"]
    text = " ".join(" ".join(printed).split())
    assert "int8-core 1.90x 1.80 to 2.00 1.85 to 1.95 80.0 → 42.0 ms 3 of 4" in text
    assert text.count("virtual phone (x86_64)") == 1


def test_another_group_or_baseline_has_a_table_of_its_own() -> None:
    printed = lines(view(), view(group=None, virtual=False), view(baseline="float32 lite"))
    assert printed.count("virtual phone (x86_64) (virtual)") == 2
    assert "-" in printed
    assert sum(line.startswith("candidate") for line in printed) == 3
    assert max(map(len, printed)) <= 80


def test_what_differs_between_both_sides_stands_in_the_row_and_below_the_table() -> None:
    other = {"baseline_harness": "benchmark_model", "clock_covers": "forward()", "clocks_differ": True}
    printed = lines(view(**other, baseline_clock_covers="Invoke()"), view(candidate="float16 torchscript"))
    text = " ".join(" ".join(printed).split())
    assert "other clock" in text
    assert "clock of benchmark_model: Invoke() clock of speed_benchmark_torch: forward()" in text
    assert "caution: int8-core: its clock covers other work than the baseline's, or may" in text
    tokens = {"tokens_differ": True, "tokens": "64 tokens", "baseline_tokens": "128 tokens"}
    text = " ".join(" ".join(lines(view(**tokens))).split())
    assert "other tokens" in text
    assert "its tokens are other than the baseline's, or may be: 64 tokens; the baseline: 128 tokens" in text
    assert max(map(len, printed)) <= 80


def test_devices_by_themselves_are_the_rows_of_one_table() -> None:
    own = {"by": GroupBy.DEVICE, "devices": 1, "of_devices": 1, "rounds": 5, "virtual": False}
    printed = lines(view(group="phone-1", **own), view(group="phone-2", ci_low=None, ci_high=None, **own))
    assert printed[0].startswith("int8-core torchscript: mobilenet_v2, speed_benchmark_torch; baseline")
    rows = [line.split() for line in printed if line.startswith(("device ", "phone-"))]
    assert [row[0] for row in rows] == ["device", "phone-1", "phone-2"]
    assert rows[1] == ["phone-1", "1.90x", "1.80", "to", "2.00", "80.0", "→", "42.0", "ms", "5"]
    assert max(map(len, printed)) <= 80
