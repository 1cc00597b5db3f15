"""The distance of the two sides of a pair, by the device's own clock."""

from dataclasses import replace

import pytest

from farm.core.results.pairing import RoundPair, Side, join_duplicates, paired_rounds
from farm.core.results.statistics.pair_distance import RESTARTED, pair_distance
from farm.core.runs.measurement import Quality, SampleKind
from tests.support.sample_measurement import MeasuredValue


def started(
    uptime_s: float | None, *, boot: str | None = "a", round: int = 1, ns: float = 1e6
) -> MeasuredValue:
    return MeasuredValue(
        round=round,
        value_ns=ns,
        kind=SampleKind.SAMPLES,
        quality=Quality.VALID,
        boot_id=boot,
        start_uptime_s=uptime_s,
    )


def pair(baseline: MeasuredValue, candidate: MeasuredValue) -> RoundPair:
    return RoundPair(round=1, block=0, baseline=baseline, candidate=candidate)


def test_the_sides_of_a_pair_are_as_far_apart_as_their_beginnings_whichever_ran_first() -> None:
    assert pair(started(1000.0), started(1240.0)).minutes_apart == pytest.approx(4.0)
    assert pair(started(1240.0), started(1000.0)).minutes_apart == pytest.approx(4.0)
    assert pair(started(1240.0), started(1000.0)).restarted is False


@pytest.mark.parametrize(
    ("baseline", "candidate", "restarted"),
    [
        (started(1000.0), started(20.0, boot="b"), True),
        (started(1000.0, boot=None), started(1240.0), None),
        (started(None), started(1240.0), False),
    ],
)
def test_no_distance_is_made_up_over_boots_and_of_what_the_device_hides(
    baseline: MeasuredValue, candidate: MeasuredValue, restarted: bool | None
) -> None:
    both = pair(baseline, candidate)
    assert (both.minutes_apart, both.restarted) == (None, restarted)


def test_sides_of_different_boots_are_left_out_and_hidden_boots_say_nothing() -> None:
    baseline = [started(100.0 * number, round=number, ns=2e6) for number in range(1, 4)]
    candidate = [
        started(110.0, round=1),
        started(15.0, round=2, boot="b"),
        started(310.0, round=3, boot=None),
    ]
    counted, (left_out,) = paired_rounds(baseline, candidate)
    assert [each.round for each in counted] == [1, 3]
    assert (left_out.round, left_out.reason, left_out.side) == (2, RESTARTED, Side.BOTH)
    assert (left_out.restarted, left_out.minutes_apart) == (True, None)
    # Both were timed at what was asked for: the ratio with what is left out has them.
    assert left_out.log_ratio is not None


def test_a_duplicate_joins_its_baseline_within_one_boot_and_in_the_middle_of_both() -> None:
    baseline, duplicate = started(1000.0, ns=1e6), started(1200.0, ns=4e6)
    (joined,) = join_duplicates([baseline], [duplicate])
    assert (joined.value_ns, joined.start_uptime_s, joined.boot_id) == (pytest.approx(2e6), 1100.0, "a")
    (alone,) = join_duplicates([baseline], [replace(duplicate, boot_id="b")])
    assert alone == baseline


def test_distances_of_a_row_are_stated_in_short() -> None:
    stated = pair_distance([1.0, None, 9.0, 2.0])
    assert stated is not None
    assert (stated.median_min, stated.largest_min, stated.pairs) == (2.0, 9.0, 3)
    assert pair_distance([None, None]) is None
