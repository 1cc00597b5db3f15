import math
from dataclasses import replace
from random import Random

import pytest

from farm.core.base.ids import FactsId
from farm.core.devices.controls import ControlLevel
from farm.core.results.pairing import OTHER_BUILD, TO_COME, RoundPair, Side, join_duplicates, paired_rounds
from farm.core.results.speedup import Speedup, Verdict, pair_variance, paired_means, speedup, speedup_of
from farm.core.runs.measurement import Quality, SampleKind
from tests.support.sample_measurement import MeasuredValue


def value(
    round: int,
    value_ns: float = 1e6,
    *,
    block: int = 0,
    repeat: int = 0,
    kind: SampleKind = SampleKind.SAMPLES,
    quality: Quality = Quality.VALID,
    facts_id: int | None = None,
) -> MeasuredValue:
    return MeasuredValue(
        round=round,
        block=block,
        repeat=repeat,
        value_ns=value_ns,
        kind=kind,
        quality=quality,
        facts_id=None if facts_id is None else FactsId(facts_id),
    )


def pairs_of(*sides_ns: tuple[float, float]) -> list[RoundPair]:
    return [
        RoundPair(round=index, block=0, baseline=value(index, baseline), candidate=value(index, candidate))
        for index, (baseline, candidate) in enumerate(sides_ns)
    ]


def compared(baseline: list[MeasuredValue], candidate: list[MeasuredValue]) -> Speedup:
    pairs, excluded = paired_rounds(baseline, candidate)
    return speedup(pairs, excluded=excluded)


def test_the_ratio_is_the_geometric_mean_of_the_rounds_ratios() -> None:
    answer = speedup(pairs_of((2e6, 1e6), (8e6, 1e6)))
    assert answer.ratio == pytest.approx(4.0)


def test_the_interval_is_students_over_the_log_ratios() -> None:
    answer = speedup(pairs_of((2.0e6, 1e6), (2.1e6, 1e6), (1.9e6, 1e6), (2.05e6, 1e6), (1.95e6, 1e6)))
    # By hand: t[0.975] with 4 degrees of freedom is 2.776445.
    logs = [math.log(ratio) for ratio in (2.0, 2.1, 1.9, 2.05, 1.95)]
    mean = sum(logs) / 5
    half = 2.776445 * math.sqrt(sum((log - mean) ** 2 for log in logs) / 4 / 5)
    assert answer.ci_low == pytest.approx(math.exp(mean - half), rel=1e-6)
    assert answer.ci_high == pytest.approx(math.exp(mean + half), rel=1e-6)
    assert answer.verdict is Verdict.FASTER


def test_four_rounds_state_a_ratio_and_decide_nothing() -> None:
    answer = speedup(pairs_of(*[(2e6, 1e6)] * 4))
    assert answer.ratio == pytest.approx(2.0)
    assert answer.ci_low is answer.ci_high is None
    assert answer.verdict is Verdict.UNDECIDED
    assert answer.reason == "4 usable rounds, at least 5 make an interval"


def test_one_round_is_called_one_round() -> None:
    assert speedup(pairs_of((2e6, 1e6))).reason == "1 usable round, at least 5 make an interval"


def test_what_cost_most_rounds_is_said_where_there_are_too_few() -> None:
    baseline = [value(index, 2e6) for index in range(5)]
    assert compared(baseline, []).reason == (
        "0 usable rounds, at least 5 make an interval: the candidate has no measurement"
    )
    throttled = [value(index, quality=Quality.THROTTLED) for index in range(4)]
    assert compared(baseline, [*throttled, value(4)]).reason == (
        "1 usable round, at least 5 make an interval: the candidate is throttled"
    )


def test_no_rounds_state_nothing() -> None:
    answer = speedup([])
    assert (answer.ratio, answer.difference_ns, answer.rounds) == (None, None, 0)
    assert answer.verdict is Verdict.UNDECIDED
    assert answer.reason.endswith(": neither side has a measurement")


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(1.0, Verdict.SAME), (1.019, Verdict.FASTER_WITHIN), (1.03, Verdict.FASTER), (0.5, Verdict.SLOWER)],
)
def test_rounds_without_any_spread_have_an_interval_without_width(ratio: float, verdict: Verdict) -> None:
    answer = speedup(pairs_of(*[(ratio * 1e6, 1e6)] * 5))
    assert answer.ci_low == pytest.approx(ratio)
    assert answer.ci_high == pytest.approx(ratio)
    # It is never less than the margin.
    assert answer.detectable == pytest.approx(0.02)
    assert answer.verdict is verdict


def test_an_interval_on_one_side_of_1_is_judged_against_the_margin() -> None:
    sides = [(1.010e6, 1e6), (1.011e6, 1e6), (1.009e6, 1e6), (1.010e6, 1e6), (1.010e6, 1e6)]
    assert speedup(pairs_of(*sides)).verdict is Verdict.FASTER_WITHIN
    assert speedup(pairs_of(*sides), margin=0.010).verdict is Verdict.FASTER_SIZE_OPEN
    assert speedup(pairs_of(*sides), margin=0.001).verdict is Verdict.FASTER


def test_an_interval_that_spans_1_and_leaves_the_margin_is_undecided() -> None:
    answer = speedup(pairs_of((1.2e6, 1e6), (1e6, 1.2e6), (1.1e6, 1e6), (1e6, 1.1e6), (1e6, 1e6)))
    assert answer.verdict is Verdict.UNDECIDED
    assert "spans 1" in answer.reason


def test_the_difference_in_time_is_negative_for_a_quicker_candidate() -> None:
    answer = speedup(pairs_of(*[(3e6, 1e6)] * 5))
    assert answer.difference_ns == pytest.approx(-2e6)


def test_the_detectable_effect_falls_with_more_rounds() -> None:
    sides = [(1.02e6, 1e6), (0.98e6, 1e6), (1.0e6, 1e6), (1.01e6, 1e6), (0.99e6, 1e6)]
    few, many = speedup(pairs_of(*sides)), speedup(pairs_of(*sides, *sides, *sides, *sides))
    assert few.detectable is not None
    assert many.detectable is not None
    assert 0.02 < few.detectable < 0.04
    assert many.detectable < few.detectable
    # By the rounds alone: never less than the margin.
    assert many.detectable == pytest.approx(0.02)
    fine = speedup(pairs_of(*sides, *sides, *sides, *sides), margin=0.001)
    assert fine.detectable is not None
    assert fine.detectable < few.detectable / 2


def test_a_round_with_a_side_that_is_not_valid_is_left_out_and_counted() -> None:
    baseline = [value(index, 2e6) for index in range(6)]
    candidate = [value(index) for index in range(5)] + [value(5, 9e6, quality=Quality.THROTTLED)]
    answer = compared(baseline, candidate)
    assert answer.rounds == 5
    assert answer.ratio == pytest.approx(2.0)
    assert [(e.round, e.reason) for e in answer.excluded] == [(5, "the candidate is throttled")]


def test_a_round_with_a_missing_side_is_left_out_and_counted() -> None:
    answer = compared([value(0)], [value(1)])
    assert [e.reason for e in answer.excluded] == [
        "the candidate has no measurement",
        "the baseline has no measurement",
    ]


def test_the_latest_repeat_with_both_sides_valid_counts() -> None:
    short = Quality.SHORT
    baseline = [value(0, 1e6), value(0, 2e6, repeat=1), value(0, 3e6, repeat=2, quality=short)]
    candidate = [value(0, 1e6, quality=short), value(0, 1e6, repeat=1), value(0, 1e6, repeat=2)]
    pairs, excluded = paired_rounds(baseline, candidate)
    assert [(pair.baseline, pair.candidate) for pair in pairs] == [(baseline[1], candidate[1])]
    assert [(e.repeat, e.reason) for e in excluded] == [
        (0, "the candidate is incomplete"),
        (2, "the baseline is incomplete"),
    ]


def test_a_valid_pair_that_was_run_again_is_counted_as_excluded() -> None:
    both = [value(0), value(0, repeat=1)]
    pairs, excluded = paired_rounds(both, both)
    assert [pair.baseline for pair in pairs] == [both[1]]
    assert [(e.repeat, e.reason) for e in excluded] == [
        (0, "the block was run again, and a later repeat counts")
    ]


def test_the_last_block_of_a_run_that_goes_on_waits_for_its_other_side() -> None:
    baseline, candidate = [value(0), value(1), value(2)], [value(0), value(2)]
    for sides in ((baseline, candidate[:1]), (candidate[:1], baseline)):
        _, excluded = paired_rounds(*sides, is_over=False)
        # Round 1 was passed without it.
        assert [(each.round, each.reason == TO_COME) for each in excluded] == [(1, False), (2, True)]
        assert TO_COME not in {each.reason for each in paired_rounds(*sides)[1]}
    _, excluded = paired_rounds(baseline, candidate, is_over=False)
    assert [each.round for each in excluded] == [1]


def test_values_of_different_repeats_are_never_paired() -> None:
    pairs, excluded = paired_rounds([value(0, repeat=0)], [value(0, repeat=1)])
    assert pairs == []
    assert len(excluded) == 2


def test_a_median_is_never_compared_with_a_tools_mean() -> None:
    answer = compared([value(0)], [value(0, kind=SampleKind.SUMMARY)])
    assert answer.ratio is None
    assert answer.excluded[0].reason == "the baseline's value is of samples, the candidate's of summary"


def test_rounds_of_means_do_not_join_rounds_of_medians() -> None:
    baseline = [value(index) for index in range(3)] + [value(3, kind=SampleKind.SUMMARY)]
    answer = compared(baseline, baseline)
    assert (answer.rounds, answer.kind) == (3, SampleKind.SAMPLES)
    assert [e.round for e in answer.excluded] == [3]


@pytest.mark.parametrize("nonsense", [0.0, -1.0, math.nan, math.inf])
def test_a_value_that_is_no_time_is_excluded(nonsense: float) -> None:
    assert compared([value(0, nonsense)], [value(0)]).rounds == 0


def test_a_block_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="each block counts once"):
        speedup([*pairs_of((1, 1)), *pairs_of((1, 1))])


def test_rounds_on_another_build_of_the_phone_are_left_out() -> None:
    side = [value(index, facts_id=1 if index < 2 else 2) for index in range(5)]
    pairs, excluded = paired_rounds(side, side, builds={FactsId(1): 0, FactsId(2): 1})
    assert [pair.round for pair in pairs] == [2, 3, 4]
    assert [(each.round, each.reason) for each in excluded] == [(0, OTHER_BUILD), (1, OTHER_BUILD)]


def test_of_two_builds_with_as_many_rounds_the_later_counts() -> None:
    side = [value(index, facts_id=1 if index < 2 else 2) for index in range(4)]
    pairs, _ = paired_rounds(side, side, builds={FactsId(1): 0, FactsId(2): 1})
    assert [pair.round for pair in pairs] == [2, 3]


def test_a_round_whose_sides_saw_two_builds_is_no_pair() -> None:
    before, after = value(0, facts_id=1), value(0, facts_id=2)
    whole = value(1, facts_id=1)
    pairs, excluded = paired_rounds([before, whole], [after, whole], builds={FactsId(1): 0, FactsId(2): 1})
    assert [pair.round for pair in pairs] == [1]
    assert [each.reason for each in excluded] == [OTHER_BUILD]


def test_snapshots_of_one_build_are_compared() -> None:
    pairs, excluded = paired_rounds(
        [value(0, facts_id=1)], [value(0, facts_id=2)], builds={FactsId(1): 0, FactsId(2): 0}
    )
    assert (len(pairs), excluded) == (1, [])


def test_sides_whose_phones_were_controlled_in_different_degrees_are_compared_only_when_asked_for() -> None:
    baseline = [value(index) for index in range(5)]
    candidate = [replace(value(index, 5e5), control_level=ControlLevel.FIXED) for index in range(5)]
    pairs, excluded = paired_rounds(baseline, candidate)
    assert pairs == []
    assert {each.reason for each in excluded} == {
        "the baseline ran at control level free, the candidate at fixed:"
        " `farm speedups --across-controls` compares them anyway"
    }
    assert speedup(pairs, excluded=excluded).ratio is None
    pairs, _ = paired_rounds(baseline, candidate, across_controls=True)
    assert speedup(pairs).ratio == pytest.approx(2.0)


def test_a_model_read_in_whole_milliseconds_is_not_the_same_as_one_10_percent_slower() -> None:
    # 3.2 and 3.52 ms both read as 3; a margin that lets them pass as fine enough cannot hide it either.
    sides = [replace(value(index, 3e6), clock_step_ns=1_000_000) for index in range(20)]
    for margin in (0.02, 0.05, 0.1):
        answer = speedup(paired_rounds(sides, sides)[0], margin=margin)
        assert answer.verdict is Verdict.UNDECIDED
        assert answer.ci_low is not None
        assert answer.ci_low < 1 / 1.1


def test_duplicates_join_their_baseline_block_by_block() -> None:
    baseline = [value(0, 1e6), value(1, 2e6, quality=Quality.THROTTLED), value(2, 1e6)]
    duplicate = [value(0, 4e6), value(1, 3e6)]
    joined = join_duplicates(baseline, duplicate)
    assert [item.value_ns for item in joined] == pytest.approx([2e6, 3e6, 1e6])
    assert [item.round for item in joined] == [0, 1, 2]


def test_duplicates_of_another_kind_do_not_join() -> None:
    other = value(0, 4e6, kind=SampleKind.SUMMARY)
    assert join_duplicates([value(0, 1e6)], [other]) == [value(0, 1e6)]


def test_what_is_left_out_is_told_by_side_and_reason_with_the_ratio_of_all() -> None:
    baseline = [value(index, 1e6) for index in range(7)]
    throttled = Quality.THROTTLED
    candidate = [*(value(index, 1e6) for index in range(5)), value(5, 2e6, quality=throttled)]
    answer = compared(baseline, candidate)
    assert [(part.side, part.reason, part.blocks) for part in answer.exclusion_counts] == [
        (Side.CANDIDATE, "the candidate is throttled", 1),
        (Side.CANDIDATE, "the candidate has no measurement", 1),
    ]
    assert answer.ratio == pytest.approx(1)
    assert answer.ratio_of_all == pytest.approx(0.5 ** (1 / 6))
    assert answer.selection_matters


def test_what_ran_on_other_hardware_is_in_no_ratio() -> None:
    baseline = [value(index, 1e6) for index in range(6)]
    candidate = [*(value(index, 1e6) for index in range(5)), value(5, 9e6, quality=Quality.FALLBACK)]
    assert compared(baseline, candidate).ratio_of_all == pytest.approx(1)


def test_a_start_that_is_noisy_counts() -> None:
    baseline = [value(index, 1e6) for index in range(5)]
    candidate = [value(index, 2e6, quality=Quality.NOISY) for index in range(5)]
    assert compared(baseline, candidate).rounds == 5


def test_sides_that_began_at_other_temperatures_are_no_pair() -> None:
    baseline = [replace(value(index), start_skin_c=30.0, start_battery_c=28.0) for index in range(6)]
    candidate = [
        replace(value(index), start_skin_c=30.0 + degrees, start_battery_c=None)
        for index, degrees in enumerate((0.0, 5.0, -5.0, 2.0, 5.1, 1.0))
    ]
    _, excluded = paired_rounds(baseline, candidate)
    assert [(e.round, e.reason) for e in excluded] == [
        (
            4,
            "the skin had 30.0 °C before the baseline, 35.1 °C before the candidate: at most 5 °C apart",
        )
    ]


def test_a_candidate_pairs_with_the_start_of_its_baseline_in_its_own_block() -> None:
    baseline = [value(round, block=block) for round in range(6) for block in (0, 1, 2)]
    candidate = [value(round, 2e6, block=1) for round in range(6) if round != 4]
    pairs, excluded = paired_rounds(baseline, candidate)
    assert [(pair.round, pair.block) for pair in pairs] == [(round, 1) for round in (0, 1, 2, 3, 5)]
    # It failed there: of the baseline's other blocks nothing is left out.
    assert [(each.round, each.block, each.side) for each in excluded] == [(4, 1, "candidate")]
    assert speedup(pairs, excluded=excluded).rounds == 5


def test_a_duplicate_has_a_pair_in_each_block_of_its_baseline() -> None:
    baseline = [value(round, block=block) for round in range(5) for block in (0, 1, 2)]
    duplicate = [value(round, block=block) for round in range(5) for block in (0, 1, 2)][:-1]
    result = compared(baseline, duplicate)
    assert (result.rounds, result.pairs) == (5, 14)
    assert [(each.round, each.block) for each in result.excluded] == [(4, 2)]
    assert result.ci_low is not None


def test_the_variance_of_a_pair_is_known_from_five_rounds_on_however_many_blocks_they_have() -> None:
    random = Random(1)
    baseline, duplicate = (
        [value(round, random.uniform(1e6, 1.1e6), block=block) for round in range(5) for block in range(3)]
        for _ in range(2)
    )
    few, _ = paired_rounds(baseline[:12], duplicate[:12])
    enough, _ = paired_rounds(baseline, duplicate)
    assert pair_variance(few) is None, "12 pairs, but of 4 rounds"
    assert speedup(few).ci_low is None, "nor do they make an interval"
    variance = pair_variance(enough)
    assert variance is not None
    assert variance.degrees == 14


def test_a_candidate_that_was_never_measured_is_left_out_once_a_round() -> None:
    baseline = [value(round, block=block) for round in range(3) for block in (4, 5)]
    _, excluded = paired_rounds(baseline, [])
    assert [(each.round, each.block) for each in excluded] == [(0, 4), (1, 4), (2, 4)]


def test_a_block_of_fewer_candidates_in_later_rounds_is_where_it_is_then() -> None:
    baseline = [value(round, block=block) for round in range(8) for block in (0, 1) if round < 5 or not block]
    candidate = [value(round, block=1 if round < 5 else 0) for round in range(8)]
    pairs, excluded = paired_rounds(baseline, candidate)
    assert [pair.block for pair in pairs] == [1] * 5 + [0] * 3
    assert excluded == []


def test_one_comparison_at_two_confidences_is_that_of_each() -> None:
    pairs = pairs_of((2e6, 1e6), (2.1e6, 1e6), (1.9e6, 1e6), (2e6, 1.1e6), (2.2e6, 1e6))
    means = paired_means(pairs, [])
    for confidence in (0.95, 0.99):
        assert speedup_of(means, confidence=confidence) == speedup(pairs, confidence=confidence)
