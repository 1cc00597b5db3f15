"""The speedup table as people see it."""

from farm.cli.results.speedups.pivot import pivot_tables
from farm.cli.results.speedups.table import speedup_table
from farm.core.results.metric_comparison import MetricComparison
from farm.core.results.pairing import Side
from farm.core.results.speedup import ExclusionCount
from farm.core.results.statistics.families import alarm_share
from farm.core.runs.measurement import Better, Verdict
from farm.presentation.speedup_blocks import with_short_labels
from tests.support.sample_views import duplicate_view, speedup_view

UNFINISHED = speedup_view(
    cell_id=14,
    candidate="int8-core lite",
    rounds=4,
    excluded=1,
    left_out=[ExclusionCount(side=Side.CANDIDATE, reason="the candidate is throttled", blocks=1)],
    speedup_of_all=2.28,
    p_value=None,
    ci_low=None,
    ci_high=None,
    detectable=None,
    verdict=Verdict.UNDECIDED,
    reason="4 usable rounds, at least 5 make an interval",
)

WIDE = """\
phone-1  (Pixel 7a, Tensor G2)
mobilenet_v2, speed_benchmark_torch, matrix 3; baseline float32 torchscript
candidate                  speedup   95 % interval            time  difference  rounds  verdict
int8-core torchscript        2.31x    2.28 to 2.34  43.1 → 18.7 ms    -24.4 ms       5  faster
float32 torchscript (A/A)   1.001x  0.994 to 1.007  43.1 → 43.1 ms    -30.0 µs       5  same
int8-core lite               2.31x               -  43.1 → 18.7 ms    -24.4 ms       4  undecided
note: int8-core lite: 4 usable rounds, at least 5 make an interval
left out of int8-core lite: 1 x the candidate is throttled; with them 2.28x
smallest difference so many rounds show: 2.1% (int8-core torchscript); 2.0% (float32 torchscript (A/A))

speedup = baseline time / candidate time: above 1 the candidate is faster.
time = baseline → candidate, geometric means over the rounds that count;
       tables of times show medians over rounds, which differ from them.
faster, slower = the whole interval is beyond the margin; within = between the
       margin and 1; size open = on both sides of the margin; same = holds 1 and
       is within the margin; undecided = holds 1 and leaves it, or is missing.
A/A: the baseline against its duplicate, which also joins the baseline of the other rows."""

NARROW = """\
candidate
  speedup   95 % interval            time  difference  rounds  verdict
int8-core torchscript
    2.31x    2.28 to 2.34  43.1 → 18.7 ms    -24.4 ms       5  faster
float32 torchscript (A/A)
   1.001x  0.994 to 1.007  43.1 → 43.1 ms    -30.0 µs       5  same
int8-core lite
    2.31x               -  43.1 → 18.7 ms    -24.4 ms       4  undecided
"""

VIEWS = [speedup_view(), duplicate_view(), UNFINISHED]


def plain(*views: object, width: int = 120) -> str:
    return speedup_table(views, width=width).plain  # type: ignore[arg-type]


def test_a_wide_terminal_gets_one_line_for_each_candidate() -> None:
    assert plain(*VIEWS) == WIDE


def test_at_80_columns_a_candidate_has_a_line_of_its_own_and_nothing_is_cut() -> None:
    table = plain(*VIEWS, width=80)
    assert NARROW in table

    assert max(map(len, table.splitlines())) <= 80


def test_rows_stand_in_the_order_of_their_matrix_on_every_device() -> None:
    cells = [
        ("phone-1", 3, "later"),
        ("phone-1", 2, "sooner"),
        ("phone-2", 5, "sooner"),
        ("phone-2", 6, "later"),
    ]
    table = plain(
        *(speedup_view(device_id=device, cell_id=number, candidate=name) for device, number, name in cells)
    )
    assert [word for word in table.split() if word in ("sooner", "later")] == ["sooner", "later"] * 2


def test_each_device_is_a_block_that_says_once_what_it_is() -> None:
    table = plain(speedup_view(), speedup_view(device_id="phone-2", device_model="Galaxy S23", soc=None))
    assert table.count("phone-1  (Pixel 7a, Tensor G2)") == 1
    assert table.count("phone-2  (Galaxy S23)") == 1


def test_a_virtual_phone_is_called_one_whatever_its_model() -> None:
    host = speedup_view(virtual=True, device_model=None, soc="Some CPU @ 2 GHz")
    named = speedup_view(virtual=True, device_model="virtual device (x86_64)", soc="Some CPU")
    assert "(virtual device: Some CPU @ 2 GHz)" in plain(host)
    assert "(virtual device (x86_64), Some CPU)" in plain(named)


def test_a_baseline_of_its_own_is_named_beside_each_candidate() -> None:
    table = plain(speedup_view(candidate="int8 nnapi", baseline="int8 cpu"), speedup_view())
    assert "int8 nnapi vs int8 cpu" in table
    assert "int8-core torchscript vs float32 torchscript" in table
    assert "baseline float32 torchscript" not in table


def test_a_comparison_without_any_round_shows_dashes_and_why() -> None:
    nothing = {"speedup": None, "ci_low": None, "ci_high": None, "baseline_ns": None, "candidate_ns": None}
    none = speedup_view(
        **nothing,
        rounds=0,
        detectable=None,
        verdict="undecided",
        reason="0 usable rounds",
        difference_ns=None,
    )
    table = plain(none)
    assert "int8-core        -              -  - → -           -       0  undecided" in table
    assert "note: int8-core: 0 usable rounds" in table
    assert "smallest difference" not in table


def test_candidates_that_are_undecided_for_the_same_reason_are_told_of_together() -> None:
    names = ["int8-core lite", "int8-full lite", "int8-full flatbuffer"]
    quick = {"verdict": "undecided", "reason": "1 usable round"}
    table = plain(*[speedup_view(candidate=name, **quick) for name in names[:2]])
    assert "note: int8-core lite, int8-full lite: 1 usable round" in table
    table = plain(*[speedup_view(candidate=name, **quick) for name in names])
    assert "note: 3 candidates: 1 usable round" in table


def test_times_that_differ_much_both_have_their_unit() -> None:
    assert "1.20 s → 98.3 ms" in plain(speedup_view(baseline_ns=1.2e9, candidate_ns=98.3e6))


def test_a_slower_candidate_has_a_difference_with_a_plus() -> None:
    assert "+24.4 ms" in plain(speedup_view(baseline_ns=18_660_000.0, candidate_ns=43_100_000.0))


def test_without_duplicates_the_legend_does_not_mention_them() -> None:
    assert "A/A" not in plain(speedup_view())


def test_blocks_of_two_matrices_that_differ_in_a_flag_say_so() -> None:
    table = plain(
        speedup_view(changed_settings={"iter": 30, "report_pep": True}),
        duplicate_view(changed_settings={"iter": 30, "report_pep": False}),
        speedup_view(matrix_id=4, changed_settings={"iter": 100}),
    )
    assert "matrix 3; baseline float32\nwith iter=30\n" in table
    assert "matrix 4; baseline float32\nwith iter=100\n" in table


def test_a_pivot_has_candidates_by_devices_and_never_cuts_a_number() -> None:
    devices = ("phone-1", "phone-2", "phone-3")
    views = [
        view
        for device in devices
        for view in (speedup_view(device_id=device), duplicate_view(device_id=device))
    ]
    lines = pivot_tables(views, width=60).plain.splitlines()
    assert lines[:4] == [
        "mobilenet_v2, torchscript, speed_benchmark_torch, matrix 3; baseline float32",
        "variant                  phone-1            phone-2",
        "float32        43.1 ms            43.1 ms          ",
        "int8-core      18.7 ms   2.31x +  18.7 ms   2.31x +",
    ]
    assert sum(line.count("2.31x +") for line in lines) == 3
    assert all(len(line) <= 60 for line in lines[1:])


def test_devices_go_by_their_labels() -> None:
    views = [speedup_view(device_label="bench left"), speedup_view(device_id="phone-2")]
    table = plain(*views)
    assert "bench left  (Pixel 7a, Tensor G2)" in table
    assert "phone-1" not in table
    heading = pivot_tables(views, width=100).plain.splitlines()[1]
    assert heading.split("  ")[0].strip() == "variant"
    assert "bench left" in heading
    assert "phone-2" in heading


def test_what_is_left_out_follows_with_its_reason_and_what_it_would_change() -> None:
    view = speedup_view(
        excluded=3,
        left_out=[
            ExclusionCount(side=Side.CANDIDATE, reason="the candidate is throttled", blocks=2),
            ExclusionCount(side=Side.BASELINE, reason="the baseline has no measurement", blocks=1),
        ],
        speedup_of_all=2.05,
        selection_matters=True,
    )
    text = " ".join(plain(view, width=80).split())
    assert (
        "left out of int8-core: 2 x the candidate is throttled, 1 x the baseline has no measurement;"
        " with them 2.05x" in text
    )
    assert "caution: int8-core: what is left out differs by more than the interval's half-width" in text


def test_rounds_without_a_time_change_no_number_and_are_one_line_for_all_their_candidates() -> None:
    missing = [ExclusionCount(side=Side.BASELINE, reason="the baseline has no measurement", blocks=1)]
    views = [
        speedup_view(cell_id=number, candidate=name, speedup=ratio, left_out=missing, speedup_of_all=ratio)
        for number, (name, ratio) in enumerate({"int8": 2.31, "float16": 1.18}.items(), start=1)
    ]
    lines = [line for line in plain(*views, width=100).splitlines() if "left out" in line]
    assert lines == ["left out of int8, float16: 1 x the baseline has no measurement"]


def test_rows_that_stand_beside_all_others_are_marked_and_chance_is_told() -> None:
    rows = [
        speedup_view(cell_id=number, candidate=f"int8 {number}", p_value=p)
        for number, p in enumerate([0.0001, 0.04, 0.6, 0.9], start=1)
    ]
    text = plain(*rows)
    assert text.count("faster*") == 1
    assert "all 4 rows are judged together" in text
    assert "Were all equal, 0.2 rows would be" in " ".join(text.split())
    assert "judged together" not in plain(rows[0])


def test_the_alarms_of_past_duplicates_are_told_with_their_interval() -> None:
    text = " ".join(plain(speedup_view(), duplicate_view(aa_alarms=alarm_share(2, 40))).split())
    assert "A/A on phone-1: 2 of its last 40 pairs left out 1, 5% (95 % interval 1% to 17%" in text
    assert "cannot be trusted" not in text
    often = " ".join(plain(duplicate_view(aa_alarms=alarm_share(9, 40))).split())
    assert "its other rows cannot be trusted" in often


def test_verdicts_are_told_against_the_margin() -> None:
    table = plain(
        speedup_view(verdict=Verdict.SLOWER_WITHIN, margin=0.05), speedup_view(verdict="faster_size_open")
    )
    assert "slower, within 5 %" in table
    assert "faster, size open" in table


def test_rounds_of_several_matrices_are_told_with_the_number_of_looks() -> None:
    text = plain(speedup_view(matrices=[9, 7, 3]), width=80)
    assert "pooled: int8-core: rounds of matrices 9, 7, 3 (equal versions): 3 looks" in text


def test_metrics_that_the_matrix_names_follow_with_unit_and_statistic() -> None:
    metric = MetricComparison(
        name="memory_peak", unit="MB", better=Better.LOWER, baseline=12.5, candidate=None
    )
    table = plain(speedup_view(metrics=[metric]), width=80)
    assert "memory_peak (MB, lower is better), medians: baseline → candidate\n" in table
    assert "  int8-core  12.5 → -" in table
    assert max(map(len, table.splitlines())) <= 80


def test_bytes_of_both_sides_are_printed_as_sizes() -> None:
    metric = MetricComparison(
        name="memory_peak_rss", unit="bytes", better=Better.LOWER, baseline=112.5e6, candidate=40e6
    )
    table = plain(speedup_view(metrics=[metric]), width=80)
    assert "memory_peak_rss (bytes, lower is better), medians: baseline → candidate\n" in table
    assert "  int8-core  112 MB → 40.0 MB" in table


def test_labels_show_what_differs_within_the_model() -> None:
    views = [
        speedup_view(
            candidate=f"mobilenet_v2 {precision} lite threads=4",
            baseline="mobilenet_v2 float32 lite threads=4",
            changed_settings={"threads": 4},
        )
        for precision in ("int8-core", "float16")
    ]
    assert [view.candidate for view in with_short_labels(views)] == ["int8-core", "float16"]
    assert {view.baseline for view in with_short_labels(views)} == {"float32"}
    assert "with threads=4" in speedup_table(views, width=120).plain
