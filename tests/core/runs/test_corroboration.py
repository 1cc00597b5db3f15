"""The CPU's own account of a run against where its tool says that it ran."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from farm.core.devices.condition import Condition
from farm.core.runs.corroboration import corroborate, run_cpu_usage
from farm.core.runs.evidence import ExitRecord
from farm.core.runs.measurement import Reading
from farm.core.runs.placement import Accelerator, Placement, Share

S = 1_000_000_000


def share(kind: Accelerator, nodes: int) -> Share:
    return Share(accelerator=kind, by="delegate", nodes=nodes, line="the line")


def reading(kind: str = "npu", *, cpu_nodes: int = 0, measured_s: int = 4) -> Reading:
    own = share(Accelerator(kind), 60)
    rest = (share(Accelerator.CPU, cpu_nodes),) if cpu_nodes else ()
    return Reading(
        samples_ns=(S,) * measured_s,
        expected_samples=measured_s,
        actual_backend="cpu" if kind == "cpu" else "nnapi",
        accelerator=kind,
        proof="it says so",
        placement=None if kind in ("cpu", "unknown") else Placement(shares=(own, *rest), total_nodes=60),
    )


def ended(cpu_s: float | None, duration_s: float = 5.0) -> ExitRecord:
    return ExitRecord(code=0, duration_s=duration_s, cpu_s=cpu_s)


def after(gpu_busy_pct: float | None = None) -> Condition:
    return Condition(taken_at=datetime(2031, 5, 6, tzinfo=UTC), gpu_busy_pct=gpu_busy_pct)


def checked(
    found: Reading, cpu_s: float | None, *, asked: str = "nnapi", busy: float | None = None
) -> Reading:
    return corroborate(found, ended(cpu_s), after(busy), requested_backend=asked)


def test_all_nodes_elsewhere_and_a_busy_cpu_is_not_believed() -> None:
    found = checked(reading(), 4.9)
    assert found.accelerator == "unknown"
    assert found.proof.startswith("the CPU worked at least 98% of the measured 4.0 s")
    assert "it says so" in found.proof


@pytest.mark.parametrize("cpu_s", [None, 0.1, 1.0, 3.0])
def test_an_idle_cpu_or_one_that_only_loaded_the_model_contradicts_nothing(cpu_s: float | None) -> None:
    assert checked(reading(), cpu_s) == reading()


def test_what_was_left_to_the_cpu_explains_its_work() -> None:
    assert checked(reading(cpu_nodes=5), 4.9) == reading(cpu_nodes=5)


def test_a_run_on_the_cpu_that_the_cpu_knows_nothing_of_is_not_believed() -> None:
    assert checked(reading("cpu"), 0.05, asked="cpu").accelerator == "unknown"
    assert checked(reading("cpu"), 4.4, asked="cpu") == reading("cpu")
    # Others wanted the CPU, too.
    assert checked(reading("cpu"), 0.8, asked="cpu") == reading("cpu")


def test_steps_of_10_ms_say_nothing_of_a_short_run() -> None:
    short = replace(reading(), samples_ns=(S // 2,))
    assert checked(short, 4.9) == short
    assert run_cpu_usage(short, ended(4.9)) is None


def test_samples_that_last_longer_than_their_process_are_not_judged_by_it() -> None:
    assert run_cpu_usage(reading(measured_s=9), ended(4.9)) is None


def test_what_fell_back_stays_what_it_is() -> None:
    fell_back = replace(reading("cpu"), actual_backend="cpu")
    assert checked(fell_back, 0.01) == fell_back


@pytest.mark.parametrize(
    ("cpu_s", "busy", "words"),
    [
        (0.2, None, "other hardware did most of the work"),
        (0.2, 93.0, "the GPU said 93 %"),
        (4.9, None, "may have computed this itself"),
    ],
)
def test_what_nothing_shows_has_what_is_likely_beside_it(
    cpu_s: float, busy: float | None, words: str
) -> None:
    found = checked(reading("unknown"), cpu_s, busy=busy)
    assert found.accelerator == "unknown"
    assert words in found.proof


def test_a_mean_counts_as_often_as_it_was_taken() -> None:
    mean = replace(reading(), samples_ns=(), mean_ns=2.0 * S, summed_samples=2)
    use = run_cpu_usage(mean, ended(4.9))
    assert use is not None
    assert use.measured_s == pytest.approx(4.0)
    assert use.most_cores >= use.least_cores
