import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.measurement import Reading, SampleKind
from farm.core.runs.stats import quantile, summarize_samples, t_quantile


def reading(samples_ns: tuple[int, ...] = (), mean_ns: float | None = None) -> Reading:
    return Reading(
        samples_ns=samples_ns,
        mean_ns=mean_ns,
        expected_samples=len(samples_ns),
        actual_backend="cpu",
        accelerator="cpu",
        proof="the only backend",
    )


def test_the_value_of_samples_is_their_median() -> None:
    answer = summarize_samples(reading((10, 20, 30, 40, 1040)))
    assert (answer.kind, answer.count, answer.value_ns) == (SampleKind.SAMPLES, 5, 30)
    assert (answer.mean_ns, answer.min_ns, answer.max_ns) == (228, 10, 1040)
    assert answer.p90_ns == pytest.approx(640)


def test_scatter_is_the_interquartile_range_over_the_median() -> None:
    assert summarize_samples(reading((80, 90, 100, 110, 120))).scatter == pytest.approx(0.2)


def test_one_sample_is_its_own_summary() -> None:
    answer = summarize_samples(reading((7,)))
    assert (answer.value_ns, answer.p90_ns, answer.scatter) == (7, 7, 0)


def test_samples_of_zero_have_no_scatter() -> None:
    assert summarize_samples(reading((0, 0))).scatter is None


def test_a_tools_own_mean_is_a_summary_without_samples() -> None:
    answer = summarize_samples(reading(mean_ns=1.5))
    assert (answer.kind, answer.count, answer.value_ns) == (SampleKind.SUMMARY, 0, 1.5)
    assert (answer.min_ns, answer.max_ns, answer.p90_ns, answer.scatter) == (None, None, None, None)


@pytest.mark.parametrize("impossible", [reading(), reading((1,), mean_ns=1.0)])
def test_a_reading_has_either_samples_or_a_mean(impossible: Reading) -> None:
    with pytest.raises(ValueError, match="either samples or a mean"):
        summarize_samples(impossible)


@pytest.mark.parametrize(("degrees", "expected"), [(1, 12.706), (4, 2.776), (9, 2.262), (1000, 1.962)])
def test_t_quantiles_are_those_of_the_printed_tables(degrees: int, expected: float) -> None:
    assert t_quantile(0.975, degrees) == pytest.approx(expected, abs=5e-4)


@given(st.lists(st.integers(0, 10**15), min_size=1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 0.9, 1.0]))
def test_quantiles_are_numpys_to_the_last_bit(samples_ns: list[int], share: float) -> None:
    assert quantile(sorted(samples_ns), share) == float(np.percentile(np.asarray(samples_ns), 100 * share))
